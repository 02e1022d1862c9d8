-- sessions_to_archive --
-- Ended sessions of any tenant whose messages have had their time by their agent's settings; 0 days is never
select due.tenant_id, due.conversation_id
from agents a
cross join lateral (
  select coalesce((a.memory_config ->> 'episodic_retention_days')::int, %(days)s) as days
) as kept
cross join lateral (
  select c.tenant_id, c.conversation_id, c.ended_at
  from conversations c
  where c.tenant_id = a.tenant_id and c.agent_id = a.agent_id and c.status = 'ended' and c.archived_at is null
    and c.episode_settled_at is not null and c.ended_at < now() - make_interval(days => kept.days)
  order by c.ended_at
  limit %(limit)s
) as due
where kept.days > 0
order by due.ended_at
limit %(limit)s

-- sessions_to_expire --
-- Ended sessions of any tenant whose episodes have had their time by their agent's settings; 0 days is never
select due.tenant_id, due.conversation_id
from agents a
cross join lateral (
  select coalesce((a.memory_config ->> 'episodic_archive_days')::int, %(days)s) as days
) as kept
cross join lateral (
  select c.tenant_id, c.conversation_id, c.ended_at
  from conversations c
  where c.tenant_id = a.tenant_id and c.agent_id = a.agent_id and c.status = 'ended' and c.expired_at is null
    and c.episode_settled_at is not null and c.ended_at < now() - make_interval(days => kept.days)
  order by c.ended_at
  limit %(limit)s
) as due
where kept.days > 0
order by due.ended_at
limit %(limit)s

-- mark_archived --
-- The session's messages and everything that quotes them are about to go; its row stays locked until they have
update conversations
set archived_at = now(), summary = null, summary_tokens = 0
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s and status = 'ended' and archived_at is null

-- delete_turns --
-- The turns of a session with their messages and feedback
delete from turns
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s

-- forget_quotes --
-- What a verdict on the session quotes of it
update procedure_captures set quote = null, quote_seq = null
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s

-- archive_episode --
-- From now on the episode is its summary and facts
update episodes set archived_at = now()
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s

-- delete_passages --
-- The dialogue, as recall found it
delete from episode_facts f
using episodes e
where e.tenant_id = %(tenant_id)s and e.conversation_id = %(conversation_id)s
  and f.tenant_id = e.tenant_id and f.episode_id = e.episode_id and f.kind = 'passage'

-- index_summary --
-- The words of what is left of the episode
select index_episode(tenant_id, episode_id) from episodes
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s

-- mark_expired --
-- The session's episode is about to go
update conversations set expired_at = now()
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s and status = 'ended' and expired_at is null

-- delete_episode_of --
-- The episode of a session with its facts
delete from episodes
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s

-- delete_husk --
-- A session of which neither messages nor episode are left
delete from conversations
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s
  and archived_at is not null and expired_at is not null
