-- lock_sessions --
-- The user's sessions; whoever writes into one of them now waits, and then finds it gone
select conversation_id
from conversations
where tenant_id = %(tenant_id)s and user_id = %(user_id)s and (%(agent_id)s::uuid is null or agent_id = %(agent_id)s)
order by conversation_id
for update

-- erase_candidates --
-- Procedures that were captured from the sessions and that nobody has approved
delete from procedures
where tenant_id = %(tenant_id)s and source_conversation_id = any(%(sessions)s) and status <> 'approved'

-- unlink_procedures --
-- What an administrator has approved is the tenant's; it no longer says from whom it came
update procedures set source_conversation_id = null
where tenant_id = %(tenant_id)s and source_conversation_id = any(%(sessions)s)

-- count_messages --
-- Messages that are about to go with their sessions
select count(*) as messages from messages
where tenant_id = %(tenant_id)s and conversation_id = any(%(sessions)s)

-- erase_episodes --
-- The user's episodes with their facts, passages and vectors
delete from episodes
where tenant_id = %(tenant_id)s and user_id = %(user_id)s and (%(agent_id)s::uuid is null or agent_id = %(agent_id)s)

-- erase_sessions --
-- The sessions with their turns and traces, messages, running summaries and feedback
delete from conversations
where tenant_id = %(tenant_id)s and conversation_id = any(%(sessions)s)

-- record_erasure --
-- Who erased whose memory, and how much of it
insert into erasures (tenant_id, erasure_id, user_id, agent_id, erased_by, counts)
values (%(tenant_id)s, %(erasure_id)s, %(user_id)s, %(agent_id)s, %(erased_by)s, %(counts)s)
returning erasure_id, user_id, agent_id, erased_by, counts, erased_at

-- next_sessions --
-- The user's sessions from a place on, oldest first
select conversation_id, started_at
from conversations
where tenant_id = %(tenant_id)s and user_id = %(user_id)s and (%(agent_id)s::uuid is null or agent_id = %(agent_id)s)
  and (%(at)s::timestamptz is null or (started_at, conversation_id) >= (%(at)s, %(id)s::uuid))
order by started_at, conversation_id
limit %(limit)s

-- session_records --
-- What is stored of a session, in order, from a place in it on
select part, ordinal, record
from (
  select 0 as part, 0 as ordinal, jsonb_build_object(
           'type', 'conversation', 'conversation_id', conversation_id, 'agent_id', agent_id, 'status', status,
           'started_at', started_at, 'ended_at', ended_at, 'end_reason', end_reason, 'archived_at', archived_at,
           'running_summary', summary) as record
  from conversations
  where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s and user_id = %(user_id)s
  union all
  select 1, seq, jsonb_build_object(
           'type', 'message', 'conversation_id', conversation_id, 'seq', seq, 'message_id', message_id, 'role', role,
           'content', content, 'created_at', created_at)
  from messages
  where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s
  union all
  select 2, user_seq, jsonb_build_object(
           'type', 'turn', 'conversation_id', conversation_id, 'turn_id', turn_id, 'message_id', client_message_id,
           'status', status, 'started_at', started_at, 'finished_at', finished_at, 'trace', trace)
  from turns
  where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s
  union all
  select 3, row_number() over (order by called_at, tool_call_id)::int, jsonb_build_object(
           'type', 'tool_call', 'conversation_id', conversation_id, 'turn_id', turn_id, 'name', name,
           'arguments', arguments, 'outcome', outcome, 'called_at', called_at)
  from tool_calls
  where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s
  union all
  select 4, m.seq, jsonb_build_object(
           'type', 'feedback', 'conversation_id', m.conversation_id, 'message_id', f.message_id, 'rating', f.rating,
           'comment', f.comment, 'created_at', f.created_at)
  from feedback f
  join messages m on m.tenant_id = f.tenant_id and m.message_id = f.message_id
  where f.tenant_id = %(tenant_id)s and f.user_id = %(user_id)s and m.conversation_id = %(conversation_id)s
  union all
  select 5, 0, jsonb_build_object(
           'type', 'episode', 'episode_id', episode_id, 'conversation_id', conversation_id, 'agent_id', agent_id,
           'summary', summary, 'summary_source', summary_source, 'started_at', started_at, 'ended_at', ended_at,
           'end_reason', end_reason, 'archived_at', archived_at)
  from episodes
  where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s
  union all
  select 6, f.ordinal, jsonb_build_object(
           'type', f.kind, 'episode_id', f.episode_id, 'content', f.content, 'first_seq', f.first_seq,
           'last_seq', f.last_seq)
  from episode_facts f
  join episodes e on e.tenant_id = f.tenant_id and e.episode_id = f.episode_id
  where f.tenant_id = %(tenant_id)s and e.conversation_id = %(conversation_id)s and f.kind <> 'summary'
    and f.space_id = current_space()
  union all
  select 7, row_number() over (order by created_at, procedure_id)::int, jsonb_build_object(
           'type', 'procedure_candidate', 'procedure_id', procedure_id, 'conversation_id', source_conversation_id,
           'name', name, 'description', description, 'steps', steps, 'status', status)
  from procedures
  where tenant_id = %(tenant_id)s and source_conversation_id = %(conversation_id)s and status <> 'approved'
  union all
  select 8, 0, jsonb_build_object(
           'type', 'procedure_capture', 'conversation_id', conversation_id, 'outcome', outcome, 'quote', quote,
           'judged_at', judged_at)
  from procedure_captures
  where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s
) as records
where (part, ordinal) > (%(part)s, %(ordinal)s)
order by part, ordinal
limit %(limit)s
