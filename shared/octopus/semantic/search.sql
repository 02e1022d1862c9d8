-- query_words --
-- The telling words of a query among the live chunks of some agents, how much they tell, and how many chunks there are,
-- here and of all tenants
with counted as (
  select term, sum(chunks)::double precision as chunks
  from chunk_term_counts
  where tenant_id = %(tenant_id)s and agent_id = any(%(agent_ids)s)
    and term = any(array(select 0 union all select term_of(lexeme) from unnest(words_of(%(text)s))))
  group by term
), idfs as (
  select c.term, c.chunks, ln(1 + (n.chunks - c.chunks + 0.5) / (c.chunks + 0.5)) as idf
  from counted c join counted n on n.term = 0
  where c.term <> 0 and c.chunks between 1 and n.chunks
)
select coalesce((select chunks from counted where term = 0), 0)::integer as chunks,
       (select greatest(reltuples, 0)::double precision from pg_class where oid = 'chunks'::regclass) as everywhere,
       term_vector(array_agg(term), array_agg(idf)) as words, coalesce(sum(idf), 1) as information,
       array_agg(term order by chunks, term) as terms, array_agg(chunks::integer order by chunks, term) as counts
from idfs

-- scan --
-- The best live chunks of some agents by meaning and words: each is looked at
select c.document_id, c.generation, c.ordinal
from chunks c
join documents d on d.tenant_id = %(tenant_id)s and d.agent_id = any(%(agent_ids)s) and d.document_id = c.document_id
where c.tenant_id = %(tenant_id)s and c.agent_id = any(%(agent_ids)s) and c.space_id = %(space_id)s
  and c.generation = d.live_generation
order by (c.near <=> %(vector)s) + %(share)s / %(information)s * (c.terms <#> %(words)s),
         c.document_id, c.ordinal
limit %(candidates)s

-- one_plan --
-- For this transaction: plan a prepared statement once, not for its parameters each time
select set_config('plan_cache_mode', 'force_generic_plan', true)

-- walk_indexes --
-- For this transaction: take chunks from the index in the order of distance until there are enough that pass the filters
select set_config('hnsw.iterative_scan', 'strict_order', true), set_config('hnsw.ef_search', %(ef_search)s, true),
       set_config('hnsw.max_scan_tuples', '40000', true), set_config('enable_sort', 'off', true),
       set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true)

-- as_usual --
-- For the rest of this transaction: the planner's own choice
select set_config('enable_sort', 'on', true), set_config('enable_seqscan', 'on', true),
       set_config('enable_bitmapscan', 'on', true)

-- nearest --
-- The nearest live chunks of some agents, from the index for vectors of so many dimensions
select c.document_id, c.generation, c.ordinal
from chunks c
join documents d on d.tenant_id = %(tenant_id)s and d.document_id = c.document_id
where c.tenant_id = %(tenant_id)s and c.agent_id = any(%(agent_ids)s) and c.space_id = %(space_id)s
  and vector_dims(c.near) = {dimensions} and c.generation = d.live_generation
order by c.near::halfvec({dimensions}) <=> %(vector)s
limit %(candidates)s

-- with_words --
-- The chunks that hold most of what some rare words tell
select p.document_id, d.live_generation as generation, o.ordinal
from chunk_postings p
join entries_of(%(words)s) as w on w.term = p.term
join documents d on d.tenant_id = p.tenant_id and d.document_id = p.document_id
cross join unnest(p.ordinals) as o (ordinal)
where p.tenant_id = %(tenant_id)s and p.agent_id = any(%(agent_ids)s) and p.term = any(%(terms)s)
group by p.document_id, d.live_generation, o.ordinal
order by sum(w.weight) desc, p.document_id, o.ordinal
limit %(candidates)s

-- by_meaning --
-- Chunks by their cosine
select c.document_id, c.ordinal, d.file_name, c.heading, c.page, c.content, c.token_count,
       1 - (c.near <=> %(vector)s) as cosine, 0.0::double precision as share,
       row_number() over (order by c.near <=> %(vector)s, c.document_id, c.ordinal)::integer as cosine_rank,
       null::integer as share_rank
from unnest(%(documents)s::uuid[], %(generations)s::integer[], %(ordinals)s::integer[])
       as k (document_id, generation, ordinal)
join chunks c on c.tenant_id = %(tenant_id)s and c.document_id = k.document_id and c.generation = k.generation
  and c.ordinal = k.ordinal and c.space_id = %(space_id)s
join documents d on d.tenant_id = %(tenant_id)s and d.document_id = c.document_id
order by cosine_rank
limit %(limit)s

-- by_meaning_and_words --
-- Chunks by cosine and share, once more by what the best have in common, and by the support that these give each other,
-- as in octopus.ranking.KnowledgeWeights
with compared as materialized (
  -- Of all candidates only what ranks them: rows with vectors would be copied from step to step.
  select c.document_id, c.generation, c.ordinal, 1 - (c.near <=> %(vector)s) as cosine,
         -(c.terms <#> %(words)s) / %(information)s as share
  from unnest(%(documents)s::uuid[], %(generations)s::integer[], %(ordinals)s::integer[])
         as k (document_id, generation, ordinal)
  join chunks c on c.tenant_id = %(tenant_id)s and c.document_id = k.document_id and c.generation = k.generation
    and c.ordinal = k.ordinal and c.space_id = %(space_id)s
), best as (
  select *, row_number() over (order by cosine + %(share)s * share desc, document_id, ordinal) as place,
         row_number() over (order by cosine desc, document_id, ordinal)::integer as cosine_rank,
         case when share > 0 then row_number() over (order by share desc, document_id, ordinal)::integer end as share_rank
  from compared
  order by place
  limit %(candidates)s
), candidates as materialized (
  select b.*, c.near, c.terms
  from best b
  join chunks c on c.tenant_id = %(tenant_id)s and c.document_id = b.document_id and c.generation = b.generation
    and c.ordinal = b.ordinal and c.space_id = %(space_id)s
), leaders as materialized (
  select terms, near from candidates where place <= %(leaders)s
), centre as materialized (
  select v.mean, sqrt(1 - 2 * %(centroid)s * (v.mean <#> %(vector)s) + (%(centroid)s * l2_norm(v.mean)) ^ 2) as length
  from (select avg(near) as mean from leaders) as v
), held as materialized (
  select e.term, sum(e.weight) as held from leaders l cross join entries_of(l.terms) as e group by e.term
), counted as (
  select term, sum(chunks)::double precision as chunks
  from chunk_term_counts
  where tenant_id = %(tenant_id)s and agent_id = any(%(agent_ids)s) and term = any(array(select term from held))
  group by term
), telling as (
  select term, idf, held * idf as worth
  from (
    select h.term, h.held, ln(1 + greatest(%(chunks)s - n.chunks + 0.5, 0.5) / (n.chunks + 0.5)) as idf
    from held h join counted n on n.term = h.term
  ) as t
  order by worth desc, term
  limit %(terms_added)s
), widened as (
  select term, sum(weight) as weight
  from (
    select term, weight from entries_of(%(words)s)
    union all
    select term, %(term_weight)s * idf * worth / max(worth) over () from telling
  ) as w
  group by term
), widened_words as materialized (
  select term_vector(array_agg(term), array_agg(weight)) as words, coalesce(sum(weight), 1) as information from widened
), scored as (
  select c.document_id, c.generation, c.ordinal, c.near, c.cosine, c.share, c.cosine_rank, c.share_rank,
         (c.cosine - %(centroid)s * (c.near <#> centre.mean)) / centre.length
         - %(widened_share)s * (c.terms <#> w.words) / w.information as score
  from candidates c cross join centre cross join widened_words w
), placed as materialized (
  select *, row_number() over (order by score desc, document_id, ordinal) <= %(peers)s as is_peer from scored
), ranked as (
  select p.document_id, p.generation, p.ordinal, p.cosine, p.share, p.cosine_rank, p.share_rank, p.is_peer,
         p.score + %(support)s * coalesce(around.score - p.score, 0) as score
  from placed p
  cross join lateral (
    select sum(o.score * o.likeness) / sum(o.likeness) as score
    from (
      select score, exp(-%(sharpness)s * (near <#> p.near)) as likeness
      from placed
      where p.is_peer and is_peer and (document_id, ordinal) <> (p.document_id, p.ordinal)
      offset 0 -- so that it is computed once
    ) as o
  ) as around
  order by p.is_peer desc, score desc, p.document_id, p.ordinal
  limit %(limit)s
)
select r.document_id, r.ordinal, d.file_name, c.heading, c.page, c.content, c.token_count, r.cosine, r.share,
       r.cosine_rank, r.share_rank
from ranked r
join chunks c on c.tenant_id = %(tenant_id)s and c.document_id = r.document_id and c.generation = r.generation
  and c.ordinal = r.ordinal and c.space_id = %(space_id)s
join documents d on d.tenant_id = %(tenant_id)s and d.document_id = r.document_id
order by r.is_peer desc, r.score desc, r.document_id, r.ordinal
