-- correct_factor --
-- Correct the token factor of a model; it falls only if nobody else has corrected it since it was read
insert into token_factors as known (model, factor) values (%(model)s, %(after)s)
on conflict (model) do update set factor = excluded.factor, updated_at = now()
where known.factor = %(before)s or excluded.factor > known.factor

-- get_turn --
-- A turn with its trace, of the whole tenant
select turn_id, conversation_id, agent_id, user_id, user_seq, status, stop_reason, trace, started_at, finished_at
from turns
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s and turn_id = %(turn_id)s

-- agent_prompt --
-- The system prompt as it is now, with its version; deleted agents too
select system_prompt, version from agents where tenant_id = %(tenant_id)s and agent_id = %(agent_id)s

-- chunks_now --
-- Chunks as they are stored now
select c.document_id || ':' || c.ordinal as item_id, d.file_name, c.heading, c.page, c.content
from unnest(%(document_ids)s::uuid[], %(ordinals)s::integer[]) as asked (document_id, ordinal)
join documents d on d.tenant_id = %(tenant_id)s and d.document_id = asked.document_id
join chunks c on c.tenant_id = d.tenant_id and c.document_id = d.document_id and c.generation = d.live_generation
  and c.ordinal = asked.ordinal and c.space_id = current_space()

-- episodes_now --
-- Episodes as they are stored now
select episode_id::text as item_id, started_at, summary
from episodes
where tenant_id = %(tenant_id)s and episode_id = any (%(episode_ids)s::uuid[])

-- procedures_now --
-- Procedures as they are stored now
select procedure_id::text as item_id, name, description, steps, version
from procedures
where tenant_id = %(tenant_id)s and procedure_id = any (%(procedure_ids)s::uuid[])

-- history_now --
-- The part of the log that a turn showed to the model, and the turn's own message
select seq, message_id, turn_id, role, content, token_count, stop_reason, created_at
from messages
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s
  and (seq between %(first_seq)s and %(last_seq)s or seq = %(user_seq)s)
order by seq
