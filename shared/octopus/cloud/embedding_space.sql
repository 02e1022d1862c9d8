-- begin_space --
-- The first embedder to arrive defines the space
insert into embedding_spaces (model, dimensions, is_current)
select %(model)s, %(dimensions)s, true
where not exists (select from embedding_spaces where is_current)
on conflict do nothing

-- current_space --
-- The space that recall searches
select space_id, model, dimensions from embedding_spaces where is_current
