-- add_agent --
-- An agent without a past
insert into agents (tenant_id, agent_id, name, system_prompt) values (%s, %s, 'aria', 'You are Aria.')

-- vector_indexes --
-- How the nearest neighbour indexes were made
select indexdef from pg_indexes where indexname in ('chunks_nearest_384', 'chunks_nearest_1024') order by indexname

-- drop_vector_indexes --
-- They are built faster at once than row by row
drop index chunks_nearest_384, chunks_nearest_1024

-- copy_documents --
-- Indexed documents
copy documents (tenant_id, document_id, agent_id, file_name, object_key, media_type, created_by, status, generation,
                live_generation)
from stdin with (format binary)

-- copy_chunks --
-- Chunks with text and vector
copy chunks (tenant_id, document_id, generation, ordinal, agent_id, content, token_count, content_hash, space_id, embedding)
from stdin with (format binary)

-- copy_episodes --
-- Episodes without their conversations
copy episodes (tenant_id, episode_id, conversation_id, agent_id, user_id, summary, summary_source, message_count, last_seq,
               started_at, ended_at, end_reason)
from stdin with (format binary)

-- copy_facts --
-- Traces of episodes
copy episode_facts (tenant_id, episode_id, ordinal, agent_id, user_id, kind, content, token_count, space_id, embedding,
                    context, parts)
from stdin with (format binary)

-- index_episodes --
-- The words of some episodes
select index_episode(tenant_id, episode_id) from episodes where episode_id = any(%s)

-- drop_postings_key --
-- It is built faster at once, too
alter table chunk_postings drop constraint chunk_postings_pkey

-- add_postings --
-- What the trigger of `documents` would have noted of some documents' words
insert into chunk_postings
select c.tenant_id, c.agent_id, e.term, c.document_id, array_agg(c.ordinal)
from chunks c, entries_of(c.terms) as e
where c.tenant_id = %s and c.document_id = any(%s)
group by 1, 2, 3, 4

-- add_postings_key --
-- As in the schema
alter table chunk_postings add primary key (tenant_id, agent_id, term, document_id)

-- count_terms --
-- What the trigger would have counted
insert into chunk_term_counts
select tenant_id, agent_id, term, sum(cardinality(ordinals)) from chunk_postings group by 1, 2, 3

-- count_chunks --
-- The same under term 0
insert into chunk_term_counts select tenant_id, agent_id, 0, count(*) from chunks group by 1, 2

-- every_chunk --
-- All texts and vectors, an agent's together
select tenant_id, content, embedding from chunks order by tenant_id, document_id, ordinal

-- analyze --
-- So that the planner knows the procedures, too
analyze
