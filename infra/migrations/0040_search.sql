-- Words beside the vectors, with what PostgreSQL has: BM25 as an inner product of two sparse vectors.
--
-- A stored text carries, for each of its terms, the part of BM25 that depends on that text alone, as a sparsevec:
--   tf / (tf + k1 * (1 - b + b * length / usual_length))        (Robertson and Zaragoza 2009, without the idf)
-- A query carries the idf of its terms, which depends on the scope that is searched. Their inner product is BM25. A term is
-- an English lexeme as words_of() makes it, under a number of 29 bits made of its hash, so there is no vocabulary
-- to keep; of 10,000 terms one pair in ten databases collides.

create function term_of(lexeme text) returns integer
  language sql immutable strict parallel safe
  return 1 + (hashtextextended(lexeme, 0) & 536870911)::integer;

-- One vector of numbered weights. Terms do not repeat.
create function term_vector(terms integer[], weights double precision[]) returns sparsevec
  language sql immutable parallel safe
  return (
    select ('{' || coalesce(string_agg(term || ':' || weight::real, ',' order by term), '') || '}/536870912')::sparsevec
    from unnest(terms, weights) as t (term, weight)
  );

-- The terms of a vector and their weights.
create function entries_of(vector sparsevec) returns table (term integer, weight double precision)
  language sql immutable strict parallel safe rows 100
  as $$
    select split_part(entry, ':', 1)::integer, split_part(entry, ':', 2)::double precision
    from string_to_table(trim('{}' from split_part(vector::text, '/', 1)), ',') as entry
    where entry <> ''
  $$;

-- BM25's part of a chunk, with k1 and b as in Lucene and a usual chunk of 100 terms. A text of more terms than a sparsevec
-- may hold (16,000) has no word index.
create function chunk_terms(content text) returns sparsevec
  language sql immutable strict parallel safe
  return (
    select case when count(*) <= 16000 then
             term_vector(array_agg(term), array_agg(tf / (tf + 1.2 * (0.25 + 0.75 * length / 100))))
           else term_vector('{}', '{}') end
    from (
      select term, sum(tf) as tf, sum(sum(tf)) over () as length
      from (select term_of(lexeme) as term, cardinality(positions)::double precision as tf
            from unnest(words_of(content))) as found
      group by term
    ) as counted
  );

-- Semantic memory

alter table chunks
  add column terms sparsevec not null generated always as (chunk_terms(coalesce(heading || ' ', '') || content)) stored,
  add column near  halfvec not null generated always as (embedding::halfvec) stored, -- compared three times as fast
  alter column terms set storage main, -- in the row, where a scan reads them; vector and text go beside
  alter column near set storage main,
  set (toast_tuple_target = 256);

-- In how many live chunks of an agent a term occurs; under term 0, how many there are.
create table chunk_term_counts (
  tenant_id text not null,
  agent_id  uuid not null,
  term      integer not null,
  chunks    integer not null,
  primary key (tenant_id, agent_id, term),
  foreign key (tenant_id, agent_id) references agents on delete cascade
);

-- In which live chunks of a document a term occurs: how large scopes are searched for words. A B-tree on equalities, since
-- under row-level security an index on another operator (GIN) may not be used before the policy has been checked.
create table chunk_postings (
  tenant_id   text not null,
  agent_id    uuid not null,
  term        integer not null,
  document_id uuid not null,
  ordinals    integer[] not null,
  primary key (tenant_id, agent_id, term, document_id)
);

do $$
declare
  t text;
begin
  foreach t in array array['chunk_term_counts', 'chunk_postings'] loop
    execute format('alter table %I enable row level security', t);
    execute format('alter table %I force row level security', t);
    execute format('create policy tenant on %I using (tenant_id = current_tenant()) '
                   'with check (tenant_id = current_tenant())', t);
    execute format('grant select, insert, update, delete on %I to octopus_app', t);
  end loop;
end
$$;

-- The words of a document's live chunks change in the statement that publishes, withdraws or deletes it, in the
-- order of terms, so that two documents of an agent do not deadlock. Here and below a text counts once, in the current
-- space: what is there of another is the same text with another model's vector.
create function index_chunk_terms() returns trigger
  language plpgsql as
$$
declare
  shown  integer := case when tg_op = 'DELETE' then 0 else new.live_generation end;
  hidden integer := old.live_generation;
begin
  if shown is distinct from hidden then
    insert into chunk_term_counts as counted (tenant_id, agent_id, term, chunks)
    select old.tenant_id, old.agent_id, term, sum(change)
    from (
      select t.term, case when c.generation = shown then 1 else -1 end as change
      from chunks c
      cross join lateral (select 0 union all select term from entries_of(c.terms)) as t (term)
      where c.tenant_id = old.tenant_id and c.document_id = old.document_id and c.generation in (shown, hidden)
        and c.space_id = current_space()
    ) as changes
    group by term
    having sum(change) <> 0
    order by term
    on conflict (tenant_id, agent_id, term) do update set chunks = counted.chunks + excluded.chunks;

    -- An array, so that the words are read once: joined, without statistics, they were read again for each posting.
    delete from chunk_postings
    where tenant_id = old.tenant_id and agent_id = old.agent_id and document_id = old.document_id and term = any(array(
      select distinct e.term from chunks c, entries_of(c.terms) as e
      where c.tenant_id = old.tenant_id and c.document_id = old.document_id and c.generation = hidden
        and c.space_id = current_space()
    ));
    insert into chunk_postings (tenant_id, agent_id, term, document_id, ordinals)
    select old.tenant_id, old.agent_id, e.term, old.document_id, array_agg(c.ordinal order by c.ordinal)
    from chunks c, entries_of(c.terms) as e
    where c.tenant_id = old.tenant_id and c.document_id = old.document_id and c.generation = shown
      and c.space_id = current_space()
    group by e.term
    order by e.term;
  end if;
  return case when tg_op = 'DELETE' then old else new end;
end
$$;
create trigger index_chunk_terms_shown after update of live_generation on documents
  for each row execute function index_chunk_terms();
create trigger index_chunk_terms_gone before delete on documents
  for each row execute function index_chunk_terms();

-- Nearest neighbours of large scopes, for the dimensions of the embedders that there are. What half precision finds is
-- compared anew with the vectors themselves.
create index chunks_nearest_384 on chunks using hnsw ((near::halfvec(384)) halfvec_cosine_ops)
  where vector_dims(near) = 384;
create index chunks_nearest_1024 on chunks using hnsw ((near::halfvec(1024)) halfvec_cosine_ops)
  where vector_dims(near) = 1024;

-- Procedural memory

alter table procedure_vectors
  add column near halfvec not null generated always as (embedding::halfvec) stored,
  alter column near set storage main;

-- Episodic memory

-- context: a quarter of the trace's own vector and three quarters of the mean of its window of dialogue.
-- parts: the vectors of its sentences. A scan of a user's contexts reads hardly anything else, for all else goes beside.
alter table episode_facts
  add column context halfvec,
  add column parts   vector[] not null default '{}',
  alter column context set storage main,
  set (toast_tuple_target = 256);

alter table episode_facts no force row level security; -- for the owner, here
alter table episodes no force row level security;
update episode_facts f
set context = f.embedding::halfvec, said_on = day_in_words(e.started_at)
from episodes e
where e.tenant_id = f.tenant_id and e.episode_id = f.episode_id;
alter table episodes force row level security;
alter table episode_facts force row level security, alter column context set not null;

-- terms: BM25's part of the session, a term's tf being the number of traces that have it. trace_terms: BM25's part of
-- each trace's window, in the order of trace_ordinals; peaks: the largest weight of each term among them. A session's
-- terms and peaks say whether its traces can be among the best at all: they stay in the row, the traces' go beside.
alter table episodes
  add column terms          sparsevec not null default '{}/536870912',
  add column peaks          sparsevec not null default '{}/536870912',
  add column trace_ordinals integer[] not null default '{}',
  add column trace_terms    sparsevec[] not null default '{}',
  alter column terms set storage external,
  alter column peaks set storage external,
  alter column trace_terms set storage external,
  set (toast_tuple_target = 8160);

-- In how many traces of a user's episodes with an agent a term occurs; under term 0, how many there are.
create table episode_term_counts (
  tenant_id text not null,
  agent_id  uuid not null,
  user_id   text not null,
  term      integer not null,
  traces    integer not null,
  primary key (tenant_id, agent_id, user_id, term),
  foreign key (tenant_id, agent_id) references agents on delete cascade
);
alter table episode_term_counts enable row level security;
alter table episode_term_counts force row level security;
create policy tenant on episode_term_counts using (tenant_id = current_tenant()) with check (tenant_id = current_tenant());
grant select, insert, update, delete on episode_term_counts to octopus_app;

-- Of each trace, its terms. A statement that adds or deletes traces moves the counts once, in the order of terms, so that
-- two of them do not deadlock; a count of nothing is forgotten.
create function count_trace_terms() returns trigger
  language plpgsql as
$$
declare
  step integer := case when tg_op = 'DELETE' then -1 else 1 end;
begin
  insert into episode_term_counts as counted (tenant_id, agent_id, user_id, term, traces)
  select m.tenant_id, m.agent_id, m.user_id, t.term, step * count(*)
  from moved m
  cross join lateral (select 0 union all select term_of(lexeme) from unnest(m.lexemes)) as t (term)
  where m.space_id = current_space()
  group by m.tenant_id, m.agent_id, m.user_id, t.term
  order by m.tenant_id, m.agent_id, m.user_id, t.term
  on conflict (tenant_id, agent_id, user_id, term) do update set traces = counted.traces + excluded.traces;

  if tg_op = 'DELETE' then
    delete from episode_term_counts c
    using (select distinct tenant_id, agent_id, user_id from moved) as m
    where c.tenant_id = m.tenant_id and c.agent_id = m.agent_id and c.user_id = m.user_id and c.traces <= 0;
  end if;
  return null;
end
$$;
create trigger count_trace_terms_added after insert on episode_facts
  referencing new table as moved for each statement execute function count_trace_terms();
create trigger count_trace_terms_gone after delete on episode_facts
  referencing old table as moved for each statement execute function count_trace_terms();

-- To be called when the traces of an episode have been written, or some of them deleted.
-- BM25F (Robertson, Zaragoza and Taylor 2004) over the dialogue around a passage: the neighbours' terms count 0.3, those
-- two away 0.15; k1 = 0.9, b = 0.4 as in Anserini, and a usual window of 26 terms (LoCoMo).
create function index_episode(tenant text, episode uuid) returns void
  language sql
  begin atomic
    with said as (
      select f.ordinal, f.kind = 'passage' as spoken, term_of(t.lexeme) as term,
             cardinality(t.positions)::double precision as tf
      from episode_facts f, unnest(f.lexemes) as t
      where f.tenant_id = tenant and f.episode_id = episode and f.space_id = current_space()
    ), heard as (
      select f.ordinal, s.term, sum(s.tf * (array[1, 0.3, 0.15])[1 + abs(f.ordinal - s.ordinal)]) as tf
      from (select distinct ordinal, spoken from said) as f
      join said s on s.ordinal = f.ordinal or (f.spoken and s.spoken and abs(f.ordinal - s.ordinal) <= 2)
      group by f.ordinal, s.term
    ), weighed as (
      select ordinal, term, tf / (tf + 0.9 * (0.6 + 0.4 * sum(tf) over (partition by ordinal) / 26)) as weight
      from heard
    ), traces as (
      select ordinal, term_vector(array_agg(term), array_agg(weight)) as terms from weighed group by ordinal
    )
    update episodes e
    set trace_ordinals = w.ordinals, trace_terms = w.terms, peaks = w.peaks
    from (
      select (select coalesce(array_agg(ordinal order by ordinal), '{}') from traces) as ordinals,
             (select coalesce(array_agg(terms order by ordinal), '{}') from traces) as terms,
             (select term_vector(array_agg(term), array_agg(weight))
              from (select term, max(weight) as weight from weighed group by term order by 2 desc limit 16000) as m
             ) as peaks
    ) as w
    where e.tenant_id = tenant and e.episode_id = episode;

    -- A usual session has 300 of these (LoCoMo).
    update episodes e
    set terms = (
      select term_vector(array_agg(term), array_agg(traces / (traces + 0.9 * (0.6 + 0.4 * length / 300))))
      from (
        select term_of(t.lexeme) as term, count(*)::double precision as traces, sum(count(*)) over () as length
        from episode_facts f, unnest(f.lexemes) as t
        where f.tenant_id = tenant and f.episode_id = episode and f.space_id = current_space()
        group by 1
        order by 2 desc, 1
        limit 16000
      ) as counted
    )
    where e.tenant_id = tenant and e.episode_id = episode;
  end;
