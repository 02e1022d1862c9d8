-- Documents are replaced whole. Each attempt to index one is a new generation, claimed before the object is read; its
-- chunks are staged beside the live ones and become visible when live_generation moves, in one transaction. Only the
-- newest claim can publish, so events may come twice or in any order.

alter table documents
  add column generation      integer not null default 0,
  add column live_generation integer not null default 0,
  add column recipe          text;
create unique index documents_file_name on documents (tenant_id, agent_id, file_name);

-- content_hash is of the text that was embedded: a chunk that did not change is not embedded again.
alter table chunks
  add column generation   integer not null,
  add column content_hash bytea not null,
  drop constraint chunks_pkey,
  add primary key (tenant_id, document_id, generation, ordinal);
create index chunks_content on chunks (tenant_id, document_id, content_hash);
