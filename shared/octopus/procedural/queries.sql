-- load_procedures --
-- What the agent may follow and the stamp of it, in one statement and so of one moment; no procedures if the stamp holds
with stamp as (
  select coalesce(string_agg(coalesce(agent_id::text, 'shared') || '=' || version, ' ' order by agent_id), '') as stamp
  from procedure_stamps
  where tenant_id = %(tenant_id)s and (agent_id = %(agent_id)s or agent_id is null)
)
select stamp.stamp, p.procedure_id, p.agent_id, p.name, p.description, p.trigger_kind, p.trigger_pattern,
       p.example_phrases, p.priority, p.steps, p.status, p.is_active, p.version, p.created_by, p.source_conversation_id,
       p.reviewed_by, p.reviewed_at, p.review_note, p.created_at, p.updated_at
from stamp
left join procedures p
  on stamp.stamp is distinct from %(known_stamp)s and p.tenant_id = %(tenant_id)s
 and (p.agent_id = %(agent_id)s or p.agent_id is null) and p.status = 'approved' and p.is_active

-- load_drafts --
-- Everything of the agent and shared that is not rejected
select procedure_id, agent_id, name, description, trigger_kind, trigger_pattern, example_phrases, priority, steps, status,
       is_active, version, created_by, source_conversation_id, reviewed_by, reviewed_at, review_note, created_at, updated_at
from procedures
where tenant_id = %(tenant_id)s and (agent_id = %(agent_id)s or agent_id is null) and status <> 'rejected'

-- nearest_procedures --
-- What the agent may follow, by its vector that is nearest to the message
select p.procedure_id, p.agent_id, p.name, p.description, p.trigger_kind, p.trigger_pattern, p.example_phrases,
       p.priority, p.steps, p.status, p.is_active, p.version, p.created_by, p.source_conversation_id, p.reviewed_by,
       p.reviewed_at, p.review_note, p.created_at, p.updated_at, near.cosine
from (
  -- The vectors are compared where they are read and the best taken of narrow rows: sorting them took 1 s for 10,000.
  select c.procedure_id, 1 - v.distance as cosine
  from procedures c
  cross join lateral (
    select min(near <=> %(vector)s) as distance
    from procedure_vectors
    where tenant_id = %(tenant_id)s and procedure_id = c.procedure_id and space_id = %(space_id)s
  ) v
  where c.tenant_id = %(tenant_id)s and (c.agent_id = %(agent_id)s or c.agent_id is null)
    and c.status = any(%(statuses)s) and (c.is_active or not %(active_only)s) and v.distance is not null
  order by v.distance, c.agent_id is null, c.priority desc, c.name
  limit %(limit)s
) near
join procedures p on p.tenant_id = %(tenant_id)s and p.procedure_id = near.procedure_id
order by near.cosine desc, p.agent_id is null, p.priority desc, p.name

-- create_procedure --
-- A procedure of an agent that exists, or of all agents
insert into procedures (tenant_id, procedure_id, agent_id, name, description, trigger_kind, trigger_pattern,
                        example_phrases, priority, steps, status, is_active, version, created_by, source_conversation_id,
                        reviewed_by, reviewed_at, review_note, created_at, updated_at)
select %(tenant_id)s, %(procedure_id)s, %(agent_id)s, %(name)s, %(description)s, %(trigger_kind)s, %(trigger_pattern)s,
       %(example_phrases)s, %(priority)s, %(steps)s, %(status)s, %(is_active)s, 1, %(created_by)s,
       %(source_conversation_id)s, %(reviewed_by)s, %(reviewed_at)s, %(review_note)s, %(created_at)s, %(updated_at)s
where %(agent_id)s::uuid is null
   or exists (select from agents
              where tenant_id = %(tenant_id)s and agent_id = %(agent_id)s and deleted_at is null)

-- update_procedure --
-- The next version, if the procedure is still at the one that was read
update procedures
set agent_id = %(agent_id)s, name = %(name)s, description = %(description)s, trigger_kind = %(trigger_kind)s,
    trigger_pattern = %(trigger_pattern)s, example_phrases = %(example_phrases)s, priority = %(priority)s,
    steps = %(steps)s, status = %(status)s, is_active = %(is_active)s, reviewed_by = %(reviewed_by)s,
    reviewed_at = %(reviewed_at)s, review_note = %(review_note)s, updated_at = %(updated_at)s, version = version + 1
where tenant_id = %(tenant_id)s and procedure_id = %(procedure_id)s and version = %(version)s

-- delete_vectors --
-- The vectors of a procedure, before others take their place
delete from procedure_vectors where tenant_id = %(tenant_id)s and procedure_id = %(procedure_id)s

-- add_vector --
-- A vector of a procedure
insert into procedure_vectors (tenant_id, procedure_id, ordinal, space_id, embedding)
values (%(tenant_id)s, %(procedure_id)s, %(ordinal)s, %(space_id)s, %(embedding)s)

-- add_version --
-- A procedure as a change left it
insert into procedure_versions (tenant_id, procedure_id, version, change, note, snapshot, changed_by, changed_at)
values (%(tenant_id)s, %(procedure_id)s, %(version)s, %(change)s, %(note)s, %(snapshot)s, %(changed_by)s, %(changed_at)s)

-- get_procedure --
-- One procedure
select procedure_id, agent_id, name, description, trigger_kind, trigger_pattern, example_phrases, priority, steps, status,
       is_active, version, created_by, source_conversation_id, reviewed_by, reviewed_at, review_note, created_at, updated_at
from procedures
where tenant_id = %(tenant_id)s and procedure_id = %(procedure_id)s

-- list_procedures --
-- A page of procedures, newest first
select procedure_id, agent_id, name, description, trigger_kind, trigger_pattern, example_phrases, priority, steps, status,
       is_active, version, created_by, source_conversation_id, reviewed_by, reviewed_at, review_note, created_at, updated_at
from procedures
where tenant_id = %(tenant_id)s
  and (%(agent_id)s::uuid is null or agent_id = %(agent_id)s or agent_id is null)
  and (%(status)s::text is null or status = %(status)s)
  and (%(is_active)s::boolean is null or is_active = %(is_active)s)
  and (%(after_at)s::timestamptz is null or (created_at, procedure_id) < (%(after_at)s, %(after_id)s::uuid))
order by created_at desc, procedure_id desc
limit %(limit)s

-- delete_procedure --
-- A procedure with its vectors and versions
delete from procedures where tenant_id = %(tenant_id)s and procedure_id = %(procedure_id)s

-- list_versions --
-- The history of a procedure, newest first
select version, change, note, snapshot, changed_by, changed_at
from procedure_versions
where tenant_id = %(tenant_id)s and procedure_id = %(procedure_id)s
order by version desc

-- get_version --
-- A procedure as it was
select version, change, note, snapshot, changed_by, changed_at
from procedure_versions
where tenant_id = %(tenant_id)s and procedure_id = %(procedure_id)s and version = %(version)s
