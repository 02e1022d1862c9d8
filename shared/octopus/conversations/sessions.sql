-- list_sessions --
-- Sessions of the tenant, of one user and one agent if given, newest first
select conversation_id, agent_id, user_id, status, last_seq, started_at, last_message_at, ended_at, end_reason, archived_at
from conversations
where tenant_id = %(tenant_id)s
  and (%(user_id)s::text is null or user_id = %(user_id)s)
  and (%(agent_id)s::uuid is null or agent_id = %(agent_id)s)
  and (%(before_at)s::timestamptz is null or (started_at, conversation_id) < (%(before_at)s, %(before_id)s::uuid))
order by started_at desc, conversation_id desc
limit %(limit)s

-- get_session --
-- One session
select conversation_id, agent_id, user_id, status, last_seq, started_at, last_message_at, ended_at, end_reason, archived_at
from conversations
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s
  and (%(user_id)s::text is null or user_id = %(user_id)s)

-- session_messages --
-- Part of the log, in order
select seq, message_id, turn_id, role, content, token_count, stop_reason, created_at
from messages
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s and seq > %(after_seq)s
order by seq
limit %(limit)s

-- end_session --
-- End a session that no turn holds; its first announcement counts from now
update conversations
set status = 'ended', ended_at = now(), end_reason = %(reason)s, turn_id = null, turn_lease_until = null,
    announced_at = now(), announcements = 1
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s and status = 'active'
  and (%(user_id)s::text is null or user_id = %(user_id)s)
  and (turn_lease_until is null or turn_lease_until < now())
returning conversation_id, agent_id, user_id, status, last_seq, started_at, last_message_at, ended_at, end_reason, archived_at

-- end_abandoned_session --
-- End a session in which nothing was said since it was looked at
update conversations c
set status = 'ended', ended_at = now(), turn_id = null, turn_lease_until = null, announced_at = now(), announcements = 1,
    end_reason = case
      when end_requested_at is not null then 'AgentClosed'
      when (select t.status from turns t
            where t.tenant_id = c.tenant_id and t.conversation_id = c.conversation_id
            order by t.user_seq desc limit 1) <> 'completed' then 'ErrorClosed'
      else 'Timeout' end
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s and status = 'active'
  and last_seq = %(last_seq)s
  and (turn_lease_until is null or turn_lease_until < now())
returning conversation_id, agent_id, user_id, status, last_seq, started_at, last_message_at, ended_at, end_reason, archived_at

-- request_end --
-- The agent wants the session to end with the turn that holds it
update conversations
set end_requested_at = now()
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s and turn_id = %(turn_id)s
  and status = 'active'

-- end_requested_session --
-- End a session whose agent has asked for it, once the turn is over
update conversations
set status = 'ended', ended_at = now(), end_reason = 'AgentClosed', turn_id = null, turn_lease_until = null,
    announced_at = now(), announcements = 1
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s and status = 'active'
  and end_requested_at is not null
  and (turn_lease_until is null or turn_lease_until < now())
returning conversation_id, agent_id, user_id, status, last_seq, started_at, last_message_at, ended_at, end_reason, archived_at

-- note_announcement --
-- Count one more announcement of an ended session that has not become an episode
update conversations
set announced_at = now(), announcements = announcements + 1
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s and status = 'ended'
  and episode_settled_at is null
returning tenant_id, conversation_id, agent_id, end_reason as reason, last_seq

-- put_feedback --
-- One thumb per message and user
insert into feedback (tenant_id, message_id, user_id, rating, comment)
select m.tenant_id, m.message_id, c.user_id, %(rating)s, %(comment)s
from messages m
join conversations c on c.tenant_id = m.tenant_id and c.conversation_id = m.conversation_id
where m.tenant_id = %(tenant_id)s and m.message_id = %(message_id)s and m.conversation_id = %(conversation_id)s
  and c.user_id = %(user_id)s
on conflict (tenant_id, message_id, user_id)
do update set rating = excluded.rating, comment = excluded.comment, created_at = now()
returning message_id, rating, comment, created_at
