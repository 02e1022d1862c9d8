-- All documents of an agent indexed anew, by a few messages on the queue (lanes), each of which takes one document
-- at a time. A document keeps its lane until it is done: a lane that is delivered again begins with the same one.

create table reindex_jobs (
  tenant_id    text not null,
  job_id       uuid not null,
  agent_id     uuid not null,
  total        integer not null,
  failed       integer not null default 0,
  requested_by text not null,
  requested_at timestamptz not null default now(),
  primary key (tenant_id, job_id),
  foreign key (tenant_id, agent_id) references agents
);
create index reindex_jobs_agent on reindex_jobs (tenant_id, agent_id, requested_at desc);

alter table documents
  add column reindex_job_id uuid,
  add column reindex_lane   integer;
create index documents_reindex on documents (tenant_id, reindex_job_id) where reindex_job_id is not null;

alter table reindex_jobs enable row level security;
alter table reindex_jobs force row level security;
create policy tenant on reindex_jobs using (tenant_id = current_tenant()) with check (tenant_id = current_tenant());
grant select, insert, update, delete on reindex_jobs to octopus_app;
