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
-- A summary, a fact or a passage with its vector and the day of its session
insert into episode_facts (tenant_id, episode_id, ordinal, agent_id, user_id, kind, content, said_on, first_seq, last_seq,
                           token_count, space_id, embedding, context, parts)
values (%(tenant_id)s, %(episode_id)s, %(ordinal)s, %(agent_id)s, %(user_id)s, %(kind)s, %(content)s,
        day_in_words(%(started_at)s), %(first_seq)s, %(last_seq)s, %(token_count)s, %(space_id)s, %(embedding)s,
        %(context)s::halfvec, %(parts)s::vector[])

-- index_episode --
-- Weigh the words of an episode's traces, once these are complete
select index_episode(%(tenant_id)s, %(episode_id)s)

-- best_traces --
-- The traces of one user with one agent that fit best, among them the best one of each of the best episodes. Exact: each
-- trace is compared by meaning, and by words where its episode can be among the best. Scores as in
-- octopus.ranking.DialogueWeights.
with query as (
  select tsvector_to_array(words_of(%(text)s)) as words
), counted as materialized (
  select term, traces::double precision as traces
  from episode_term_counts
  where tenant_id = %(tenant_id)s and agent_id = %(agent_id)s and user_id = %(user_id)s
    and term = any(array(select 0 union all select term_of(lexeme) from unnest(words_of(%(text)s))))
), lexical as materialized (
  select term_vector(array_agg(term), array_agg(idf)) as weights,
         (1 + %(session_weight)s) * coalesce(sum(idf), 1) as information
  from (
    select c.term, ln(1 + (n.traces - c.traces + 0.5) / (c.traces + 0.5)) as idf
    from counted c join counted n on n.term = 0
    where c.term <> 0
  ) as idfs
), nearest as materialized (
  select episode_id, max(-(context <#> %(half)s)) as dense
  from episode_facts
  where tenant_id = %(tenant_id)s and agent_id = %(agent_id)s and user_id = %(user_id)s and space_id = %(space_id)s
  group by episode_id
), sessions as materialized (
  -- A session without any of the words has no trace with one: its share is none.
  select e.episode_id, w.words / l.information as words,
         case when w.words > 0 then -(e.peaks <#> l.weights) / l.information else 0 end as most_words
  from episodes e cross join lexical l
  cross join lateral (select -%(session_weight)s * (e.terms <#> l.weights) as words offset 0) as w
  where e.tenant_id = %(tenant_id)s and e.agent_id = %(agent_id)s and e.user_id = %(user_id)s
), bounds as materialized (
  -- Its best trace scores at least what the nearest one has by the session's words alone, and at most what it would have
  -- if it had each word as much as any other has.
  select s.episode_id, s.words, n.dense + %(share_weight)s * s.words as least,
         n.dense + %(share_weight)s * (s.words + s.most_words) as most
  from nearest n join sessions s using (episode_id)
), hopeful as materialized (
  select episode_id, words
  from bounds
  where most >= coalesce((select least from bounds order by least desc offset %(episodes)s - 1 limit 1), '-infinity')
), worded as materialized (
  select h.episode_id, t.ordinal, h.words - (t.terms <#> l.weights) / l.information as share
  from hopeful h
  join episodes e on e.tenant_id = %(tenant_id)s and e.episode_id = h.episode_id
  cross join lexical l
  cross join unnest(e.trace_ordinals, e.trace_terms) as t (ordinal, terms)
  where h.words > 0
), scored as (
  select h.episode_id, f.ordinal, -(f.context <#> %(half)s) as dense, coalesce(w.share, h.words) as share
  from hopeful h
  cross join lateral (
    select ordinal, context
    from episode_facts
    where tenant_id = %(tenant_id)s and episode_id = h.episode_id and space_id = %(space_id)s
    offset 0 -- one episode after another, never all of the tenant's
  ) as f
  left join worded w on w.episode_id = h.episode_id and w.ordinal = f.ordinal
), ranked as (
  select episode_id, ordinal, share, dense + %(share_weight)s * share as score,
         row_number() over (partition by episode_id order by dense + %(share_weight)s * share desc, ordinal) as place
  from scored
), candidates as materialized (
  select r.episode_id, r.ordinal, r.share, r.score
  from ranked r
  join (
    select episode_id from ranked where place = 1 order by score desc, episode_id limit %(episodes)s
  ) as best using (episode_id)
  order by r.place = 1 desc, r.score desc, r.episode_id, r.ordinal
  limit greatest(%(candidates)s, %(episodes)s)
), compared as (
  select s.episode_id, s.ordinal, f.kind, f.content, s.share, s.score, 1 - (f.embedding <=> %(vector)s) as cosine,
         (select max(1 - (part <=> %(vector)s)) from unnest(f.parts) as part) as part_cosine,
         cardinality(q.words) > 1 and tsvector_to_array(f.lexemes) @> q.words as has_words
  from candidates s
  join episode_facts f on f.tenant_id = %(tenant_id)s and f.episode_id = s.episode_id and f.ordinal = s.ordinal
   and f.space_id = %(space_id)s
  cross join query q
)
select c.episode_id, c.ordinal, c.kind, c.content, c.share, c.cosine, c.has_words,
       c.score + %(part_weight)s * coalesce(c.part_cosine - c.cosine, 0) as score,
       e.conversation_id, e.started_at, e.summary, e.archived_at is not null as archived
from compared c
join episodes e on e.tenant_id = %(tenant_id)s and e.episode_id = c.episode_id
order by score desc, c.episode_id, c.ordinal

-- later_facts --
-- For each of some facts the last one said on the same matter in a later session
select distinct on (old.episode_id, old.ordinal) old.episode_id as of_episode, old.ordinal as of_ordinal,
       e.episode_id, e.conversation_id, e.started_at, e.summary, e.archived_at is not null as archived, new.content,
       1 - (new.embedding <=> %(vector)s) as cosine
from unnest(%(episodes)s::uuid[], %(ordinals)s::integer[]) as known (episode_id, ordinal)
join episode_facts old using (episode_id, ordinal)
join episodes before on before.tenant_id = old.tenant_id and before.episode_id = old.episode_id
join episode_facts new on new.tenant_id = old.tenant_id and new.agent_id = old.agent_id and new.user_id = old.user_id
 and new.space_id = old.space_id and new.kind = 'fact' and 1 - (new.embedding <=> old.embedding) >= %(least_cosine)s
join episodes e on e.tenant_id = new.tenant_id and e.episode_id = new.episode_id and e.ended_at > before.ended_at
where old.tenant_id = %(tenant_id)s and old.agent_id = %(agent_id)s and old.user_id = %(user_id)s
  and old.space_id = %(space_id)s
order by old.episode_id, old.ordinal, e.ended_at desc, new.ordinal

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
               and f.space_id = current_space()
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
               and f.space_id = current_space()
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
