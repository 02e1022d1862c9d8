-- spaces --
-- The spaces there are, and how many items each has left
select s.model, s.state, s.total, coalesce(jsonb_object_agg(b.memory, b.items) filter (where b.items > 0), '{}') as left
from embedding_spaces s
left join (select space_id, memory, count(*) as items from embedding_backlog group by space_id, memory) b using (space_id)
where s.state <> 'gone'
group by s.space_id
order by s.space_id

-- hold_current --
-- The current space; waits for everybody who is writing vectors, and keeps others from it until this transaction ends
select space_id, model from embedding_spaces where state = 'current' for update

-- coming --
-- The space whose vectors are being made
select space_id, model from embedding_spaces where state = 'coming'

-- begin --
-- A space to come: a new one, or one that was left
insert into embedding_spaces as s (model, dimensions, state) values (%(model)s, %(dimensions)s, 'coming')
on conflict (model) do update set state = 'coming', changed_at = now()
where s.dimensions = excluded.dimensions and s.state in ('leaving', 'dropping', 'gone')
  and not exists (select from embedding_backlog b where b.space_id = s.space_id and b.taken_until > now())
returning space_id

-- clear_backlog --
-- Whatever was to be done for a space
delete from embedding_backlog where space_id = %(space_id)s

-- fill_backlog --
-- Every item of every tenant
insert into embedding_backlog (tenant_id, space_id, memory, item_id)
select tenant_id, %(space_id)s, 'documents', document_id from documents
union all
select tenant_id, %(space_id)s, 'episodes', episode_id from episodes
union all
select tenant_id, %(space_id)s, 'procedures', procedure_id from procedures

-- count_backlog --
-- How much there is to do
update embedding_spaces set total = (
  select coalesce(jsonb_object_agg(memory, items), '{}')
  from (select memory, count(*) as items from embedding_backlog where space_id = %(space_id)s group by memory) as counted
)
where space_id = %(space_id)s

-- cancel --
-- The coming space is not wanted
update embedding_spaces set state = 'leaving', changed_at = now() where state = 'coming' returning space_id

-- take --
-- Items that nobody is at
update embedding_backlog set taken_until = now() + make_interval(secs => %(lease_s)s)
where (space_id, memory, tenant_id, item_id) in (
  select space_id, memory, tenant_id, item_id from embedding_backlog
  where space_id = %(space_id)s and (taken_until is null or taken_until < now())
  order by memory, tenant_id, item_id
  limit %(limit)s
  for update skip locked
)
returning tenant_id, memory, item_id, stamp

-- finish --
-- An item that has got no other text since it was taken
delete from embedding_backlog
where space_id = %(space_id)s and memory = %(memory)s and tenant_id = %(tenant_id)s and item_id = %(item_id)s
  and stamp = %(stamp)s

-- release --
-- An item that is not done
update embedding_backlog set taken_until = null
where space_id = %(space_id)s and memory = %(memory)s and tenant_id = %(tenant_id)s and item_id = %(item_id)s

-- has_backlog --
-- Whether there is anything to do for a space
select exists (select from embedding_backlog where space_id = %(space_id)s) as found

-- leave_current --
-- Recall does not search the current space any more
update embedding_spaces set state = 'leaving', changed_at = now() where state = 'current'

-- become_current --
-- Recall searches the coming space
update embedding_spaces set state = 'current', changed_at = now() where space_id = %(space_id)s and state = 'coming'

-- leave_for_good --
-- Spaces in which nobody asks any more
update embedding_spaces set state = 'dropping', changed_at = now()
where state = 'leaving' and changed_at < now() - make_interval(secs => %(seconds)s)
returning space_id

-- dropping --
-- Spaces whose vectors are being dropped
select space_id, model from embedding_spaces where state = 'dropping' order by space_id

-- forget --
-- A space that has no vectors any more
update embedding_spaces set state = 'gone', changed_at = now(), total = '{}'
where space_id = %(space_id)s and state = 'dropping'
  and not exists (select from embedding_backlog where space_id = %(space_id)s)
