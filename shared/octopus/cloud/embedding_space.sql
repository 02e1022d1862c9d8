-- begin_space --
-- The first embedder to arrive defines the space
insert into embedding_spaces (model, dimensions, state)
select %(model)s, %(dimensions)s, 'current'
where not exists (select from embedding_spaces where state = 'current')
on conflict do nothing

-- current_space --
-- The space that recall searches
select model, dimensions from embedding_spaces where state = 'current'

-- space_of_model --
-- The space of a model, if its vectors are complete: it is current, or was until a moment ago
select space_id from embedding_spaces
where model = %(model)s and dimensions = %(dimensions)s and state in ('current', 'leaving')
