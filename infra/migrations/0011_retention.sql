-- Memory that has had its time, and memory that its user wants gone.

alter table conversations add column expired_at timestamptz; -- the episode is gone as well

drop index conversations_kept;
drop index conversations_archived;
create index conversations_unarchived on conversations (tenant_id, agent_id, ended_at)
  where status = 'ended' and archived_at is null;
create index conversations_unexpired on conversations (tenant_id, agent_id, ended_at)
  where status = 'ended' and expired_at is null;
grant select (expired_at) on conversations to octopus_sweep;

create index procedures_source on procedures (tenant_id, source_conversation_id)
  where source_conversation_id is not null;
