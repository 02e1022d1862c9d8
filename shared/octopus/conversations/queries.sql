-- turn_head --
-- Agent with its model's token factor, conversation and an earlier attempt of the same request, in one row
select a.agent_id, a.name, a.description, a.system_prompt, a.model, a.memory_config, a.version, a.created_at, a.updated_at,
       to_jsonb(c) as conversation, to_jsonb(t) as earlier,
       coalesce((select factor from token_factors f where f.model = coalesce(a.model, %(model)s)),
                %(token_factor)s) as token_factor
from (values (%(agent_id)s::uuid)) as asked (agent_id)
left join agents a
  on a.tenant_id = %(tenant_id)s and a.agent_id = asked.agent_id and a.deleted_at is null
left join turns t
  on t.tenant_id = %(tenant_id)s and t.user_id = %(user_id)s and t.client_message_id = %(client_message_id)s
 and t.requested_in is not distinct from %(conversation_id)s::uuid
left join conversations c
  on c.tenant_id = %(tenant_id)s and c.user_id = %(user_id)s and c.agent_id = asked.agent_id
 and c.conversation_id = coalesce(t.conversation_id, %(conversation_id)s::uuid)

-- turn_history --
-- The newest messages that the budget can have room for, oldest first: one range of one index, ordered by it
-- (the bound is made here, because behind row-level security an index is not searched by an expression with coalesce).
-- As octopus.working.pruning cuts the log: at a multiple of the stride, but never into the turns that are kept anyway.
with chosen as (
  select coalesce((a.memory_config ->> 'max_working_memory_tokens')::integer, %(max_working_memory_tokens)s)
         - coalesce((a.memory_config ->> 'output_reserve_tokens')::integer, %(output_reserve_tokens)s) as input_budget,
         coalesce((a.memory_config ->> 'min_history_turns')::integer, %(min_history_turns)s) as turns,
         coalesce(f.factor, %(token_factor)s) as factor
  from (values (%(agent_id)s::uuid)) as asked (agent_id)
  left join agents a on a.tenant_id = %(tenant_id)s and a.agent_id = asked.agent_id
  left join token_factors f on f.model = coalesce(a.model, %(model)s)
), asked as (
  select c.conversation_id,
         least(ceil(greatest(0, c.total_tokens - input_budget / factor) / stride) * stride, coalesce(kept.begins_at, 0))::bigint
           as before
  from conversations c
  cross join chosen
  cross join lateral (select greatest(1, input_budget / %(strides)s) as stride) as grid
  left join lateral (
    select m.cumulative_tokens - m.token_count as begins_at
    from turns t
    join messages m on m.tenant_id = t.tenant_id and m.conversation_id = t.conversation_id and m.seq = t.user_seq
    where t.tenant_id = %(tenant_id)s and t.conversation_id = c.conversation_id
    order by t.user_seq desc
    offset chosen.turns -- the newest turn may be the one that is asked for again
    limit 1
  ) as kept on true
  where c.tenant_id = %(tenant_id)s and c.user_id = %(user_id)s
    and c.conversation_id = coalesce(
          (select t.conversation_id from turns t
           where t.tenant_id = %(tenant_id)s and t.user_id = %(user_id)s and t.client_message_id = %(client_message_id)s
             and t.requested_in is not distinct from %(conversation_id)s::uuid),
          %(conversation_id)s::uuid)
)
select m.seq, m.message_id, m.turn_id, m.role, m.content, m.token_count, m.stop_reason, m.created_at
from messages m
where m.tenant_id = %(tenant_id)s
  and m.conversation_id = (select conversation_id from asked)
  and m.cumulative_tokens > (select before from asked)
  and m.cumulative_tokens - m.token_count >= (select before from asked) -- none that the cut goes through
order by m.cumulative_tokens

-- open_conversation --
-- A conversation with its first turn and the user's message; nothing when the same request has begun already
with turn_key as (
  select %(turn_id)s::uuid as turn_id
  where not exists (select from turns
                    where tenant_id = %(tenant_id)s and user_id = %(user_id)s
                      and client_message_id = %(client_message_id)s
                      and requested_in is not distinct from %(requested_in)s::uuid)
), conversation as (
  insert into conversations (tenant_id, conversation_id, agent_id, user_id, last_seq, total_tokens, turn_count, turn_id,
                             attempt_id, turn_lease_until)
  select %(tenant_id)s, %(conversation_id)s, %(agent_id)s, %(user_id)s, 1, %(token_count)s, 1, turn_id, %(attempt_id)s,
         now() + make_interval(secs => %(lease_s)s)
  from turn_key
  returning conversation_id
), turn as (
  insert into turns (tenant_id, turn_id, conversation_id, agent_id, user_id, client_message_id, requested_in, user_seq,
                     attempt_id)
  select %(tenant_id)s, %(turn_id)s, conversation_id, %(agent_id)s, %(user_id)s, %(client_message_id)s, %(requested_in)s, 1,
         %(attempt_id)s
  from conversation
)
insert into messages (tenant_id, conversation_id, seq, message_id, turn_id, role, content, token_count, cumulative_tokens)
select %(tenant_id)s, conversation_id, 1, %(message_id)s, %(turn_id)s, 'user', %(content)s, %(token_count)s, %(token_count)s
from conversation

-- claim_turn --
-- Append the user's message and hold the conversation, if nobody else does and the log is as it was read
with claimed as (
  update conversations
  set turn_id = %(turn_id)s, attempt_id = %(attempt_id)s,
      turn_lease_until = now() + make_interval(secs => %(lease_s)s),
      last_seq = last_seq + 1, total_tokens = total_tokens + %(token_count)s, turn_count = turn_count + 1,
      last_message_at = now()
  where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s and status = 'active'
    and last_seq = %(expected_last_seq)s and (turn_lease_until is null or turn_lease_until < now())
  returning agent_id, user_id, last_seq, total_tokens
), turn as (
  insert into turns (tenant_id, turn_id, conversation_id, agent_id, user_id, client_message_id, requested_in, user_seq,
                     attempt_id)
  select %(tenant_id)s, %(turn_id)s, %(conversation_id)s, agent_id, user_id, %(client_message_id)s, %(requested_in)s,
         last_seq, %(attempt_id)s
  from claimed
)
insert into messages (tenant_id, conversation_id, seq, message_id, turn_id, role, content, token_count, cumulative_tokens)
select %(tenant_id)s, %(conversation_id)s, last_seq, %(message_id)s, %(turn_id)s, 'user', %(content)s, %(token_count)s,
       total_tokens
from claimed

-- reclaim_turn --
-- Hold the conversation again for its newest turn, if that has not been completed in the meantime
update conversations
set turn_id = %(turn_id)s, attempt_id = %(attempt_id)s, turn_lease_until = now() + make_interval(secs => %(lease_s)s)
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s and status = 'active'
  and (turn_lease_until is null or turn_lease_until < now())
  and not exists (select from turns later
                  where later.tenant_id = %(tenant_id)s and later.conversation_id = %(conversation_id)s
                    and later.user_seq > %(user_seq)s)
  and exists (select from turns
              where tenant_id = %(tenant_id)s and turn_id = %(turn_id)s and status <> 'completed')

-- drop_partial_answer --
-- Forget what an interrupted turn had answered so far; the user's message stays
delete from messages
where tenant_id = %(tenant_id)s and turn_id = %(turn_id)s and seq > %(user_seq)s

-- rewind_log --
-- Let the log end with the user's message of the turn again
update conversations c
set last_seq = m.seq, total_tokens = m.cumulative_tokens
from messages m
where c.tenant_id = %(tenant_id)s and c.conversation_id = %(conversation_id)s
  and m.tenant_id = c.tenant_id and m.conversation_id = c.conversation_id and m.seq = %(user_seq)s

-- restart_turn --
-- An interrupted turn runs again
update turns
set status = 'running', attempt_id = %(attempt_id)s, stop_reason = null, trace = null, finished_at = null
where tenant_id = %(tenant_id)s and turn_id = %(turn_id)s

-- renew_lease --
-- Keep holding the conversation
update conversations
set turn_lease_until = now() + make_interval(secs => %(lease_s)s)
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s and turn_id = %(turn_id)s
  and attempt_id = %(attempt_id)s

-- finish_turn --
-- Write the answer, close the turn and let the conversation go, if the turn still holds it
with answer as (
  select coalesce(sum(token_count), 0) as tokens, count(*) as messages
  from jsonb_to_recordset(%(messages)s) as m (token_count integer)
), held as (
  update conversations c
  set turn_id = null, turn_lease_until = null, last_message_at = now(),
      last_seq = last_seq + answer.messages, total_tokens = total_tokens + answer.tokens
  from answer
  where c.tenant_id = %(tenant_id)s and c.conversation_id = %(conversation_id)s and c.turn_id = %(turn_id)s
    and c.attempt_id = %(attempt_id)s
  returning c.last_seq - answer.messages as base_seq, c.total_tokens - answer.tokens as base_tokens
), written as (
  insert into messages (tenant_id, conversation_id, seq, message_id, turn_id, role, content, token_count,
                        cumulative_tokens, stop_reason)
  select %(tenant_id)s, %(conversation_id)s, base_seq + ordinal, message_id, %(turn_id)s, role, content, token_count,
         base_tokens + sum(token_count) over (order by ordinal), stop_reason
  from held, jsonb_to_recordset(%(messages)s)
             as m (ordinal integer, message_id uuid, role text, content jsonb, token_count integer, stop_reason text)
)
update turns
set status = %(status)s, stop_reason = %(stop_reason)s, trace = %(trace)s, finished_at = now()
from held
where tenant_id = %(tenant_id)s and turns.turn_id = %(turn_id)s

-- is_finished --
-- Whether this very attempt has written the turn's end
select from turns
where tenant_id = %(tenant_id)s and turn_id = %(turn_id)s and attempt_id = %(attempt_id)s and status <> 'running'

-- turn_messages --
-- The messages of one turn, in order
select seq, message_id, turn_id, role, content, token_count, stop_reason, created_at
from messages
where tenant_id = %(tenant_id)s and turn_id = %(turn_id)s
order by seq

-- extend_summary --
-- Keep the running summary of the turns that were folded away, unless another turn has folded as far already
update conversations
set summary = %(summary)s, summary_tokens = %(summary_tokens)s, summary_through = %(through)s
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s and summary_through < %(through)s

-- messages_between --
-- Part of the log, in order; both ends included
select seq, message_id, turn_id, role, content, token_count, stop_reason, created_at
from messages
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s and seq between %(first)s and %(last)s
order by seq
