-- add_conversation --
-- A conversation of many turns, each a question and an answer of given raw token counts
with conversation as (
  insert into conversations (tenant_id, conversation_id, agent_id, user_id, last_seq, total_tokens, turn_count)
  values (%(tenant_id)s, %(conversation_id)s, %(agent_id)s, %(user_id)s, 2 * %(turns)s,
          %(turns)s::bigint * (%(asked)s + %(answered)s), %(turns)s)
), turn as (
  insert into turns (tenant_id, turn_id, conversation_id, agent_id, user_id, client_message_id, user_seq, status)
  select %(tenant_id)s, md5(%(conversation_id)s::text || n)::uuid, %(conversation_id)s, %(agent_id)s, %(user_id)s,
         %(conversation_id)s::text || n, 2 * n - 1, 'completed'
  from generate_series(1, %(turns)s) as n
)
insert into messages (tenant_id, conversation_id, seq, message_id, turn_id, role, content, token_count, cumulative_tokens)
select %(tenant_id)s, %(conversation_id)s, 2 * n - 1 + k, gen_random_uuid(), md5(%(conversation_id)s::text || n)::uuid,
       case k when 0 then 'user' else 'assistant' end,
       jsonb_build_array(jsonb_build_object('type', 'text', 'text',
                                            case k when 0 then questions[1 + n %% cardinality(questions)]
                                                   else answers[1 + n %% cardinality(answers)] end)),
       case k when 0 then %(asked)s else %(answered)s end,
       (n - 1)::bigint * (%(asked)s + %(answered)s) + %(asked)s + k * %(answered)s
from generate_series(1, %(turns)s) as n, generate_series(0, 1) as k,
     (values (%(questions)s::text[], %(answers)s::text[])) as texts (questions, answers)
order by n, k

-- analyze --
-- What autovacuum does within a minute
analyze agents, conversations, turns, messages
