-- Learning procedures from sessions, and how they are used.

-- Each session is judged once. A candidate has as many of these as there were sessions that showed the same way to work;
-- the quotation is the user's, and goes with the session.
create table procedure_captures (
  tenant_id       text not null,
  conversation_id uuid not null,
  outcome         text not null check (outcome in ('captured', 'evidence', 'covered', 'not positive', 'not understood')),
  procedure_id    uuid,
  quote           text,
  quote_seq       integer,
  judged_at       timestamptz not null default now(),
  announced_at    timestamptz,
  primary key (tenant_id, conversation_id),
  foreign key (tenant_id, conversation_id) references conversations on delete cascade,
  foreign key (tenant_id, procedure_id) references procedures on delete set null (procedure_id)
);
create index procedure_captures_procedure on procedure_captures (tenant_id, procedure_id) where procedure_id is not null;

-- In which sessions a procedure was followed: one row per session, so that turns do not queue for a counter.
create table procedure_uses (
  tenant_id       text not null,
  procedure_id    uuid not null,
  conversation_id uuid not null,
  matches         integer not null default 1,
  first_used_at   timestamptz not null,
  last_used_at    timestamptz not null,
  primary key (tenant_id, procedure_id, conversation_id),
  foreign key (tenant_id, procedure_id) references procedures on delete cascade,
  foreign key (tenant_id, conversation_id) references conversations on delete cascade
);
create index procedure_uses_conversation on procedure_uses (tenant_id, conversation_id);

-- The trace of a turn names the procedure that was in the prompt (item_id is procedure:version), if any.
create function note_procedure_use() returns trigger
  language plpgsql as
$$
begin
  insert into procedure_uses as u (tenant_id, procedure_id, conversation_id, first_used_at, last_used_at)
  select p.tenant_id, p.procedure_id, new.conversation_id, new.started_at, new.finished_at
  from jsonb_path_query(new.trace, '$.sections[*] ? (@.name == "procedure").items[*] ? (@.left_out == null)') as item
  join procedures p
    on p.tenant_id = new.tenant_id and p.procedure_id = split_part(item ->> 'item_id', ':', 1)::uuid
  on conflict (tenant_id, procedure_id, conversation_id)
    do update set matches = u.matches + 1, last_used_at = excluded.last_used_at;
  return null;
end
$$;
create trigger note_procedure_use after update of status on turns
  for each row when (new.status = 'completed' and old.status <> 'completed') execute function note_procedure_use();

do $$
declare
  t text;
begin
  foreach t in array array['procedure_captures', 'procedure_uses'] loop
    execute format('alter table %I enable row level security', t);
    execute format('alter table %I force row level security', t);
    execute format('create policy tenant on %I using (tenant_id = current_tenant()) '
                   'with check (tenant_id = current_tenant())', t);
    execute format('grant select, insert, update, delete on %I to octopus_app', t);
  end loop;
end
$$;
