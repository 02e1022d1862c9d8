-- texts_to_embed --
-- A procedure that has vectors, but none of a space
select p.procedure_id, p.agent_id, p.name, p.description, p.trigger_kind, p.trigger_pattern, p.example_phrases, p.priority,
       p.steps, p.status, p.is_active, p.version, p.created_by, p.source_conversation_id, p.reviewed_by, p.reviewed_at,
       p.review_note, p.created_at, p.updated_at
from procedures p
where p.tenant_id = %(tenant_id)s and p.procedure_id = %(procedure_id)s
  and exists (select from procedure_vectors v
              where v.tenant_id = p.tenant_id and v.procedure_id = p.procedure_id and v.space_id = current_space())
  and not exists (select from procedure_vectors v
                  where v.tenant_id = p.tenant_id and v.procedure_id = p.procedure_id and v.space_id = %(space_id)s)

-- hold_procedure --
-- The procedure, kept from being changed until this transaction ends, if it is still at the version that was read
select procedure_id from procedures
where tenant_id = %(tenant_id)s and procedure_id = %(procedure_id)s and version = %(version)s
for share

-- add_vector --
-- A vector of a procedure in a space
insert into procedure_vectors (tenant_id, procedure_id, ordinal, space_id, embedding)
values (%(tenant_id)s, %(procedure_id)s, %(ordinal)s, %(space_id)s, %(embedding)s)
on conflict do nothing

-- drop_vectors --
-- What is left of a space that is being dropped
delete from procedure_vectors
where tenant_id = %(tenant_id)s and procedure_id = %(procedure_id)s and space_id = %(space_id)s
  and exists (select from embedding_spaces where space_id = %(space_id)s and state = 'dropping')
