-- add_document --
-- A document that is about to be indexed
insert into documents (tenant_id, document_id, agent_id, file_name, object_key, media_type, created_by)
values (%(tenant_id)s, %(document_id)s, %(agent_id)s, %(document_id)s, %(document_id)s, 'text/plain', 'ada')

-- add_chunk --
-- A chunk of a generation
insert into chunks (tenant_id, document_id, generation, ordinal, agent_id, content, token_count, content_hash, space_id,
                    embedding)
values (%(tenant_id)s, %(document_id)s, %(generation)s, %(ordinal)s, %(agent_id)s, %(content)s, 1,
        sha256(convert_to(%(content)s, 'UTF8')), %(space_id)s, %(embedding)s)

-- drop_vector_index --
-- It is built faster at once than row by row
drop index chunks_nearest_384

-- add_chunks --
-- Chunks of one document, each of a word of its own and one of a hundred, with vectors of sixteen dimensions in 384
insert into chunks (tenant_id, document_id, generation, ordinal, agent_id, content, token_count, content_hash, space_id,
                    embedding)
select %(tenant_id)s, %(document_id)s, 1, n, %(agent_id)s, 'word' || mod(n, 100) || ' item' || n, 1, sha256(n::text::bytea),
       %(space_id)s, (array(select random() - 0.5 + n * 0 from generate_series(1, 16)) || array_fill(0.0::float8, array[368]))::vector
from generate_series(0, %(chunks)s - 1) as n

-- add_vector_index --
-- As in the schema
create index chunks_nearest_384 on chunks using hnsw ((near::halfvec(384)) halfvec_cosine_ops)
  where vector_dims(near) = 384

-- show --
-- Let recall see a generation
update documents set live_generation = %(generation)s where tenant_id = %(tenant_id)s and document_id = %(document_id)s

-- delete_document --
-- Delete a document with its chunks
delete from documents where tenant_id = %(tenant_id)s and document_id = %(document_id)s

-- counts --
-- How many chunks have each term, as kept
select term, chunks from chunk_term_counts where agent_id = %(agent_id)s and chunks <> 0

-- recounted --
-- How many live chunks have each term
select t.term, count(*) as chunks
from chunks c
join documents d using (tenant_id, document_id)
cross join lateral (select 0 union all select term from entries_of(c.terms)) as t (term)
where c.agent_id = %(agent_id)s and c.generation = d.live_generation
group by t.term

-- postings --
-- Every posting
select term, document_id, ordinals from chunk_postings
