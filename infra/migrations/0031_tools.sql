-- Tools: what each agent can do, and every call that was made.

create table agent_tools (
  tenant_id    text not null,
  agent_id     uuid not null,
  name         text not null,
  description  text not null,
  input_schema jsonb not null,
  target       jsonb not null,
  is_active    boolean not null default true,
  version      integer not null default 1,
  created_by   text not null,
  created_at   timestamptz not null default now(),
  updated_at   timestamptz not null default now(),
  primary key (tenant_id, agent_id, name),
  foreign key (tenant_id, agent_id) references agents
);

-- A call is written before it is made, so that one that took the whole function down with it is on record too. It goes
-- with its turn, and with the messages, whose content the arguments repeat.
create table tool_calls (
  tenant_id         text not null,
  tool_call_id      uuid not null,
  conversation_id   uuid not null,
  turn_id           uuid not null,
  agent_id          uuid not null,
  user_id           text not null,
  call_id           text not null,
  name              text not null,
  arguments         jsonb not null,
  outcome           text not null default 'running'
                    check (outcome in ('running', 'succeeded', 'refused', 'failed', 'timed out', 'cancelled')),
  duration_ms       double precision,
  procedure_id      uuid,
  procedure_version integer,
  step              integer,
  called_at         timestamptz not null default now(),
  primary key (tenant_id, tool_call_id),
  foreign key (tenant_id, turn_id) references turns on delete cascade
);
create index tool_calls_conversation on tool_calls (tenant_id, conversation_id, called_at);
create index tool_calls_turn on tool_calls (tenant_id, turn_id);

do $$
declare
  t text;
begin
  foreach t in array array['agent_tools', 'tool_calls'] loop
    execute format('alter table %I enable row level security', t);
    execute format('alter table %I force row level security', t);
    execute format('create policy tenant on %I using (tenant_id = current_tenant()) '
                   'with check (tenant_id = current_tenant())', t);
    execute format('grant select, insert, update, delete on %I to octopus_app', t);
  end loop;
end
$$;
