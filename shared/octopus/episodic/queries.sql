-- claim_session --
-- Take an ended session to make its episode. A lease that lies further ahead than any can is of a clock that was set back.
update conversations c
set episode_claim = %(worker)s, episode_claim_until = now() + make_interval(secs => %(lease_s)s)
from agents a
where a.tenant_id = c.tenant_id and a.agent_id = c.agent_id
  and c.tenant_id = %(tenant_id)s and c.conversation_id = %(conversation_id)s
  and c.status = 'ended' and c.last_seq = %(last_seq)s and c.episode_settled_at is null
  and (c.episode_claim is null or c.episode_claim = %(worker)s
       or c.episode_claim_until not between now() and now() + 2 * make_interval(secs => %(lease_s)s))
returning c.conversation_id, c.agent_id, c.user_id, c.started_at, c.ended_at, c.end_reason, now() - c.ended_at as ended_for,
          a.memory_config

-- release_session --
-- Let another worker try
update conversations
set episode_claim = null, episode_claim_until = null
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s and episode_claim = %(worker)s

-- session_log --
-- Everything that was said in a session
select seq, message_id, turn_id, role, content, token_count, stop_reason, created_at
from messages
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s
order by seq

-- settle_session --
-- Close the claim, if the worker still has it and the session is still there; its row stays locked until the end
update conversations
set episode_settled_at = now(), episode_claim = null, episode_claim_until = null
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s and episode_claim = %(worker)s
  and episode_settled_at is null

-- insert_episode --
-- The episode of a session that was settled in the same transaction
insert into episodes (tenant_id, episode_id, conversation_id, agent_id, user_id, summary, summary_source, message_count,
                      last_seq, started_at, ended_at, end_reason)
select tenant_id, %(episode_id)s, conversation_id, agent_id, user_id, %(summary)s, %(summary_source)s, %(message_count)s,
       last_seq, started_at, ended_at, end_reason
from conversations
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s

-- insert_trace --
-- A summary, a fact or a passage with its vector
insert into episode_facts (tenant_id, episode_id, ordinal, agent_id, user_id, kind, content, first_seq, last_seq,
                           token_count, space_id, embedding)
values (%(tenant_id)s, %(episode_id)s, %(ordinal)s, %(agent_id)s, %(user_id)s, %(kind)s, %(content)s, %(first_seq)s,
        %(last_seq)s, %(token_count)s, %(space_id)s, %(embedding)s)

-- best_episodes --
-- Episodes of one user with one agent by their best trace: an exact scan of that scope
with query as (
  select words, numnode(words) > 1 as is_telling
  from plainto_tsquery('english', %(text)s) as words
), compared as (
  select f.episode_id, f.kind, f.content, 1 - (f.embedding <=> %(vector)s) as cosine,
         query.is_telling and f.lexemes @@ query.words as has_words
  from episode_facts f, query
  where f.tenant_id = %(tenant_id)s and f.agent_id = %(agent_id)s and f.user_id = %(user_id)s
    and f.space_id = %(space_id)s
), traces as (
  select *, case when has_words then greatest(cosine, %(words_cosine)s) else cosine end as score
  from compared
), best as (
  select episode_id, max(score) as score, max(cosine) as cosine, bool_or(has_words) as has_words
  from traces
  group by episode_id
  order by score desc, cosine desc, episode_id
  limit %(limit)s
)
select e.episode_id, e.conversation_id, e.started_at, e.summary, e.archived_at is not null as archived,
       best.cosine, best.has_words, best.score >= %(least_cosine)s as relevant, matched.kind, matched.content
from best
join episodes e on e.tenant_id = %(tenant_id)s and e.episode_id = best.episode_id
left join lateral (
  select t.kind, t.content, t.score from traces t
  where t.episode_id = best.episode_id and t.score >= %(least_cosine)s
  order by t.score desc
  limit %(matches)s
) as matched on true
order by best.score desc, best.cosine desc, best.episode_id, matched.score desc

-- latest_episodes --
-- Episodes of one user with one agent, latest end first
select episode_id, conversation_id, started_at, summary, archived_at is not null as archived
from episodes
where tenant_id = %(tenant_id)s and agent_id = %(agent_id)s and user_id = %(user_id)s
order by ended_at desc, episode_id
limit %(limit)s

-- list_episodes --
-- Episodes of the tenant, of one user and one agent if given, latest end first
select e.episode_id, e.conversation_id, e.agent_id, e.user_id, e.summary, e.summary_source, e.message_count, e.started_at,
       e.ended_at, e.end_reason, e.archived_at,
       array(select f.content from episode_facts f
             where f.tenant_id = e.tenant_id and f.episode_id = e.episode_id and f.kind = 'fact'
             order by f.ordinal) as key_facts
from episodes e
where e.tenant_id = %(tenant_id)s
  and (%(user_id)s::text is null or e.user_id = %(user_id)s)
  and (%(agent_id)s::uuid is null or e.agent_id = %(agent_id)s)
  and (%(before_at)s::timestamptz is null or (e.ended_at, e.episode_id) < (%(before_at)s, %(before_id)s::uuid))
order by e.ended_at desc, e.episode_id desc
limit %(limit)s

-- get_episode --
-- One episode
select e.episode_id, e.conversation_id, e.agent_id, e.user_id, e.summary, e.summary_source, e.message_count, e.started_at,
       e.ended_at, e.end_reason, e.archived_at,
       array(select f.content from episode_facts f
             where f.tenant_id = e.tenant_id and f.episode_id = e.episode_id and f.kind = 'fact'
             order by f.ordinal) as key_facts
from episodes e
where e.tenant_id = %(tenant_id)s and e.episode_id = %(episode_id)s
  and (%(user_id)s::text is null or e.user_id = %(user_id)s)

-- delete_episode --
-- One episode with its facts and passages
delete from episodes
where tenant_id = %(tenant_id)s and episode_id = %(episode_id)s
  and (%(user_id)s::text is null or user_id = %(user_id)s)
returning conversation_id

-- delete_session --
-- A session with its messages, turns and feedback
delete from conversations
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s
