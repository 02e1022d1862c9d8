-- Documents are replaced whole. Each attempt to index one claims it before it reads the object, and only the newest
-- claim can write: events may come twice and in any order. The chunks of a new version are staged as a generation
-- beside the live one and become visible when live_generation moves, in one transaction. An attempt that finds the
-- same content staged by the same recipe goes on where the last one stopped.

alter table documents
  add column attempt         integer not null default 0,
  add column generation      integer not null default 0,
  add column live_generation integer not null default 0,
  add column recipe          text,
  add column staged_hash     text,
  add column staged_recipe   text,
  add column announced       boolean not null default true;
create unique index documents_file_name on documents (tenant_id, agent_id, file_name);

-- content_hash is of the text that was embedded: a chunk that did not change is not embedded again.
alter table chunks
  add column generation   integer not null,
  add column content_hash bytea not null,
  drop constraint chunks_pkey,
  add primary key (tenant_id, document_id, generation, ordinal, space_id);
create index chunks_content on chunks (tenant_id, content_hash, document_id); -- not by document: that is the key's part
