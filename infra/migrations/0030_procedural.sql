-- Procedural memory: what an execution environment may keep compiled, and who changed what.

-- A counter per agent (agent_id null: the shared procedures), moved by every change of a procedure. Compiled triggers
-- are good for as long as the counters stand; counters, not clocks, because transactions commit in any order.
create table procedure_stamps (
  tenant_id text not null,
  agent_id  uuid,
  version   bigint not null default 1,
  unique nulls not distinct (tenant_id, agent_id)
);

create function stamp_procedures() returns trigger
  language plpgsql as
$$
begin
  if tg_op <> 'INSERT' then
    insert into procedure_stamps as s (tenant_id, agent_id) values (old.tenant_id, old.agent_id)
    on conflict (tenant_id, agent_id) do update set version = s.version + 1;
  end if;
  if tg_op = 'INSERT' or (tg_op = 'UPDATE' and new.agent_id is distinct from old.agent_id) then
    insert into procedure_stamps as s (tenant_id, agent_id) values (new.tenant_id, new.agent_id)
    on conflict (tenant_id, agent_id) do update set version = s.version + 1;
  end if;
  return null;
end
$$;
create trigger stamp_procedures after insert or update or delete on procedures
  for each row execute function stamp_procedures();

create index procedures_agent on procedures (tenant_id, agent_id, name);

-- What was done in a version, and the reviewer's words about it.
alter table procedure_versions
  add column change text not null default 'edited'
    check (change in ('created', 'captured', 'edited', 'approved', 'rejected', 'rolled back')),
  add column note text;

alter table procedure_stamps enable row level security;
alter table procedure_stamps force row level security;
create policy tenant on procedure_stamps using (tenant_id = current_tenant()) with check (tenant_id = current_tenant());
grant select, insert, update, delete on procedure_stamps to octopus_app;
