-- has_agent --
-- The agent, if there is one
select agent_id from agents
where tenant_id = %(tenant_id)s and agent_id = %(agent_id)s and deleted_at is null

-- add_document --
-- Announce a document; one of the same name is announced again, and stays what it is until its new object arrives
insert into documents (tenant_id, document_id, agent_id, file_name, object_key, media_type, category, size_bytes, created_by)
select %(tenant_id)s, %(document_id)s, agent_id, %(file_name)s, %(object_key)s, %(media_type)s, %(category)s,
       %(size_bytes)s, %(created_by)s
from agents
where tenant_id = %(tenant_id)s and agent_id = %(agent_id)s and deleted_at is null
on conflict (tenant_id, agent_id, file_name) do update
set media_type = excluded.media_type, category = excluded.category, updated_at = now(),
    status = case documents.status when 'deleted' then 'pending' else documents.status end
returning document_id, agent_id, file_name, object_key, media_type, category, status, failure_reason, size_bytes,
          chunk_count, token_count, created_by, created_at, updated_at, indexed_at

-- get_document --
-- One document of an agent
select document_id, agent_id, file_name, object_key, media_type, category, status, failure_reason, size_bytes,
       chunk_count, token_count, created_by, created_at, updated_at, indexed_at
from documents
where tenant_id = %(tenant_id)s and agent_id = %(agent_id)s and document_id = %(document_id)s

-- list_documents --
-- Every document of an agent whose object is not gone, newest first
select document_id, agent_id, file_name, object_key, media_type, category, status, failure_reason, size_bytes,
       chunk_count, token_count, created_by, created_at, updated_at, indexed_at
from documents
where tenant_id = %(tenant_id)s and agent_id = %(agent_id)s and status <> 'deleted'
order by created_at desc, document_id

-- delete_document --
-- Delete a document; its chunks go with it
delete from documents
where tenant_id = %(tenant_id)s and agent_id = %(agent_id)s and document_id = %(document_id)s

-- claim --
-- Take the document over, unless a later event of the key has been seen
update documents
set attempt = attempt + 1, sequencer = coalesce(%(sequencer)s, sequencer)
where tenant_id = %(tenant_id)s and object_key = %(object_key)s
  and (sequencer is null or %(sequencer)s::text is null or sequencer collate "C" <= %(sequencer)s)
  and exists (
    select from agents a
    where a.tenant_id = documents.tenant_id and a.agent_id = documents.agent_id and a.deleted_at is null
  )
returning document_id, agent_id, attempt, media_type, status, content_hash, recipe, announced

-- begin --
-- Begin a generation, or go on with one of the same content and recipe
update documents
set status = 'indexing', failure_reason = null, content_hash = null, recipe = null, size_bytes = %(size_bytes)s,
    object_version = %(version_id)s, updated_at = now(), staged_hash = %(content_hash)s, staged_recipe = %(recipe)s,
    generation = generation
      + case when (staged_hash, staged_recipe) = (%(content_hash)s, %(recipe)s) then 0 else 1 end
where tenant_id = %(tenant_id)s and document_id = %(document_id)s and attempt = %(attempt)s
returning generation

-- count_staged --
-- How many chunks the generation has already
select count(*) as chunks from chunks
where tenant_id = %(tenant_id)s and document_id = %(document_id)s and generation = %(generation)s
  and space_id = current_space()

-- embedded --
-- Which texts the document has vectors of
select distinct content_hash from chunks
where tenant_id = %(tenant_id)s and document_id = %(document_id)s and space_id = %(space_id)s
  and content_hash = any(%(hashes)s)

-- hold_claim --
-- Keep anybody from claiming the document until this transaction ends
select attempt from documents
where tenant_id = %(tenant_id)s and document_id = %(document_id)s and attempt = %(attempt)s
for share

-- stage_chunk --
-- A chunk with its vector
insert into chunks (tenant_id, document_id, generation, ordinal, agent_id, content, heading, page, token_count,
                    content_hash, space_id, embedding)
values (%(tenant_id)s, %(document_id)s, %(generation)s, %(ordinal)s, %(agent_id)s, %(content)s, %(heading)s, %(page)s,
        %(token_count)s, %(content_hash)s, %(space_id)s, %(embedding)s)

-- stage_known_chunk --
-- A chunk that takes its vector from an equal one
insert into chunks (tenant_id, document_id, generation, ordinal, agent_id, content, heading, page, token_count,
                    content_hash, space_id, embedding)
select %(tenant_id)s, %(document_id)s, %(generation)s, %(ordinal)s, %(agent_id)s, %(content)s, %(heading)s, %(page)s,
       %(token_count)s, %(content_hash)s, space_id, embedding
from chunks
where tenant_id = %(tenant_id)s and document_id = %(document_id)s and space_id = %(space_id)s
  and content_hash = %(content_hash)s
limit 1

-- publish --
-- Let recall see the staged generation
update documents
set live_generation = generation, status = 'indexed', failure_reason = null, content_hash = %(content_hash)s,
    recipe = %(recipe)s, staged_hash = null, staged_recipe = null, chunk_count = staged.chunks,
    token_count = staged.tokens, indexed_at = now(), updated_at = now(), announced = false
from (
  select count(*) as chunks, coalesce(sum(token_count), 0) as tokens from chunks
  where tenant_id = %(tenant_id)s and document_id = %(document_id)s and generation = %(generation)s
    and space_id = current_space()
) staged
where tenant_id = %(tenant_id)s and document_id = %(document_id)s and attempt = %(attempt)s

-- reject --
-- The object cannot be indexed
update documents
set status = 'failed', failure_reason = %(reason)s, content_hash = %(content_hash)s, recipe = %(recipe)s,
    staged_hash = null, staged_recipe = null, updated_at = now(), announced = false
where tenant_id = %(tenant_id)s and document_id = %(document_id)s and attempt = %(attempt)s

-- postpone --
-- The attempt was interrupted; what it has staged is kept
update documents
set status = 'pending', failure_reason = %(reason)s, updated_at = now()
where tenant_id = %(tenant_id)s and document_id = %(document_id)s and attempt = %(attempt)s and status = 'indexing'

-- withdraw --
-- The object is gone
update documents
set status = 'deleted', live_generation = 0, failure_reason = null, content_hash = null, recipe = null,
    staged_hash = null, staged_recipe = null, chunk_count = 0, token_count = 0, indexed_at = null, updated_at = now(),
    announced = false
where tenant_id = %(tenant_id)s and document_id = %(document_id)s and attempt = %(attempt)s

-- drop_dead_chunks --
-- What recall does not see, once nothing is being staged
delete from chunks c
using documents d
where c.tenant_id = %(tenant_id)s and c.document_id = %(document_id)s
  and d.tenant_id = c.tenant_id and d.document_id = c.document_id and c.generation <> d.live_generation

-- announced --
-- The bus has taken the news
update documents set announced = true
where tenant_id = %(tenant_id)s and document_id = %(document_id)s and attempt = %(attempt)s

-- start_reindex --
-- A job that takes every document of an agent, also from an earlier job
with taken as (
  update documents set reindex_job_id = %(job_id)s, reindex_lane = null
  where tenant_id = %(tenant_id)s and agent_id = %(agent_id)s and status <> 'deleted'
  returning document_id
)
insert into reindex_jobs (tenant_id, job_id, agent_id, total, requested_by)
select %(tenant_id)s, %(job_id)s, %(agent_id)s, (select count(*) from taken), %(requested_by)s

-- latest_reindex --
-- How far the last job of an agent has come
select job_id, total, failed, requested_by, requested_at,
       (select count(*) from documents d where d.tenant_id = j.tenant_id and d.reindex_job_id = j.job_id) as remaining
from reindex_jobs j
where tenant_id = %(tenant_id)s and agent_id = %(agent_id)s
order by requested_at desc
limit 1

-- take_for_reindex --
-- The document that the lane has not finished, else one that no lane has
update documents set reindex_lane = %(lane)s
where tenant_id = %(tenant_id)s and document_id = (
  select document_id from documents
  where tenant_id = %(tenant_id)s and reindex_job_id = %(job_id)s
    and (reindex_lane is null or reindex_lane = %(lane)s)
  order by reindex_lane nulls last, document_id
  limit 1
  for update skip locked
)
returning document_id, object_key

-- finish_reindex --
-- The job is done with the document
with finished as (
  update documents set reindex_job_id = null, reindex_lane = null
  where tenant_id = %(tenant_id)s and document_id = %(document_id)s and reindex_job_id = %(job_id)s
  returning document_id
)
update reindex_jobs set failed = failed + %(failed)s
where tenant_id = %(tenant_id)s and job_id = %(job_id)s and exists (select from finished)
