-- abandoned_sessions --
-- Active sessions of any tenant that are idle or over age by their agent's settings, longest silent first
select c.tenant_id, c.conversation_id, c.last_seq
from conversations c
join agents a on a.tenant_id = c.tenant_id and a.agent_id = c.agent_id
where c.status = 'active'
  and (c.last_message_at < now() - make_interval(mins => coalesce((a.memory_config ->> 'session_idle_minutes')::int,
                                                                  %(idle_minutes)s))
       or c.started_at < now() - make_interval(hours => coalesce((a.memory_config ->> 'session_max_hours')::int,
                                                                 %(max_hours)s))
       or c.end_requested_at < now() - interval '1 minute')
order by c.last_message_at
limit %(limit)s

-- unsettled_sessions --
-- Ended sessions of any tenant without an episode whose last announcement is old; the pause doubles each time
select tenant_id, conversation_id, last_seq
from conversations
where status = 'ended' and episode_settled_at is null
  and announced_at < now() - make_interval(mins => %(patience_minutes)s) * power(2, least(announcements - 1, 7))
order by announced_at
limit %(limit)s
