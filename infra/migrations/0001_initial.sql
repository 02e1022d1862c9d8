-- Four memories, one log, one tenant boundary.
--
-- Every row carries its tenant. Row-level security is forced on every table and compares for equality with the
-- setting octopus.tenant_id, which the application sets for each transaction; without it nothing is visible.
-- The application role owns nothing and cannot switch the policies off.

create extension if not exists vector;

do $$
begin
  if not exists (select from pg_roles where rolname = 'octopus_app') then
    create role octopus_app login;
  end if;
  if not exists (select from pg_roles where rolname = 'octopus_sweep') then
    create role octopus_sweep login;
  end if;
  -- On Aurora both roles authenticate with short-lived IAM tokens.
  if exists (select from pg_roles where rolname = 'rds_iam') then
    grant rds_iam to octopus_app, octopus_sweep;
  end if;
end
$$;

create function current_tenant() returns text
  language sql stable parallel safe
  return nullif(current_setting('octopus.tenant_id', true), '');

-- The embedding models that stored vectors belong to. Vectors of different spaces are never compared: recall searches the
-- current one. Of a coming one the vectors are being made, beside; those of one that is leaving are dropped after a while.
create table embedding_spaces (
  space_id   integer primary key generated always as identity,
  model      text not null unique,
  dimensions integer not null check (dimensions between 1 and 2000),
  state      text not null check (state in ('coming', 'current', 'leaving', 'dropping', 'gone')),
  changed_at timestamptz not null default now() -- when it entered this state
);
create unique index embedding_spaces_current on embedding_spaces (state) where state = 'current';
create unique index embedding_spaces_coming on embedding_spaces (state) where state = 'coming';

create function current_space() returns integer
  language sql stable parallel safe
  return (select space_id from embedding_spaces where state = 'current');

create table agents (
  tenant_id     text not null,
  agent_id      uuid not null,
  name          text not null,
  description   text not null default '',
  system_prompt text not null,
  model         text,
  memory_config jsonb not null default '{}',
  version       integer not null default 1,
  created_at    timestamptz not null default now(),
  updated_at    timestamptz not null default now(),
  deleted_at    timestamptz,
  primary key (tenant_id, agent_id)
);
create unique index agents_name on agents (tenant_id, name) where deleted_at is null;

-- A conversation is one session. Its log is numbered without gaps by last_seq; turn_id with its lease says which
-- turn is being answered now, and attempt_id by which attempt of it: one that has lost its lease cannot write any more. summary is the running summary of the turns up to seq summary_through that pruning has
-- folded away.
create table conversations (
  tenant_id        text not null,
  conversation_id  uuid not null,
  agent_id         uuid not null,
  user_id          text not null,
  status           text not null default 'active' check (status in ('active', 'ended')),
  last_seq         integer not null default 0,
  total_tokens     bigint not null default 0,
  turn_count       integer not null default 0,
  summary          text,
  summary_tokens   integer not null default 0,
  summary_through  integer not null default 0,
  turn_id          uuid,
  attempt_id       uuid,
  turn_lease_until timestamptz,
  started_at       timestamptz not null default now(),
  last_message_at  timestamptz not null default now(),
  ended_at         timestamptz,
  end_reason       text check (end_reason in ('UserClosed', 'AgentClosed', 'Timeout', 'ErrorClosed')),
  primary key (tenant_id, conversation_id),
  foreign key (tenant_id, agent_id) references agents,
  check ((status = 'ended') = (ended_at is not null)),
  check ((status = 'ended') = (end_reason is not null))
);
create index conversations_user on conversations (tenant_id, user_id, started_at desc);
create index conversations_agent on conversations (tenant_id, agent_id);
create index conversations_idle on conversations (last_message_at) where status = 'active';

-- One row per turn: its identity for retries (client_message_id within the conversation that the request named, if
-- any), its outcome, and a trace of ids and numbers (never text) for the Context Inspector.
create table turns (
  tenant_id         text not null,
  turn_id           uuid not null,
  conversation_id   uuid not null,
  agent_id          uuid not null,
  user_id           text not null,
  client_message_id text not null,
  requested_in      uuid,
  user_seq          integer not null,
  attempt_id        uuid,
  status            text not null default 'running' check (status in ('running', 'completed', 'interrupted')),
  stop_reason       text,
  trace             jsonb,
  started_at        timestamptz not null default now(),
  finished_at       timestamptz,
  primary key (tenant_id, turn_id),
  unique nulls not distinct (tenant_id, user_id, client_message_id, requested_in),
  foreign key (tenant_id, conversation_id) references conversations on delete cascade
);
create index turns_conversation on turns (conversation_id, user_seq);

-- The log. cumulative_tokens is the running total up to and including the message, so that the newest history that
-- fits a budget is one index range, whatever the length of the conversation. content is json, not jsonb: nothing looks
-- into it here, and a turn reads megabytes of it, which jsonb would have to be written out as text again.
create table messages (
  tenant_id         text not null,
  conversation_id   uuid not null,
  seq               integer not null,
  message_id        uuid not null,
  turn_id           uuid not null,
  role              text not null check (role in ('user', 'assistant', 'tool')),
  content           json not null,
  token_count       integer not null check (token_count > 0),
  cumulative_tokens bigint not null,
  stop_reason       text,
  created_at        timestamptz not null default now(),
  primary key (tenant_id, conversation_id, seq),
  unique (tenant_id, message_id),
  foreign key (tenant_id, conversation_id) references conversations on delete cascade,
  foreign key (tenant_id, turn_id) references turns on delete cascade
);
create index messages_budget on messages (tenant_id, conversation_id, cumulative_tokens);
create index messages_turn on messages (turn_id);

create table feedback (
  tenant_id  text not null,
  message_id uuid not null,
  user_id    text not null,
  rating     smallint not null check (rating in (-1, 1)),
  comment    text,
  created_at timestamptz not null default now(),
  primary key (tenant_id, message_id, user_id),
  foreign key (tenant_id, message_id) references messages (tenant_id, message_id) on delete cascade
);

-- Episodic memory: one episode per conversation, at most.
create table episodes (
  tenant_id       text not null,
  episode_id      uuid not null,
  conversation_id uuid not null,
  agent_id        uuid not null,
  user_id         text not null,
  summary         text not null,
  summary_source  text not null check (summary_source in ('model', 'extractive', 'verbatim')),
  message_count   integer not null,
  last_seq        integer not null,
  started_at      timestamptz not null,
  ended_at        timestamptz not null,
  end_reason      text not null,
  archived_at     timestamptz,
  created_at      timestamptz not null default now(),
  primary key (tenant_id, episode_id),
  unique (tenant_id, conversation_id),
  foreign key (tenant_id, agent_id) references agents
);
create index episodes_scope on episodes (tenant_id, agent_id, user_id, ended_at desc);

-- What recall searches: the summary, each key fact and each passage of the dialogue, each with its own vector; while
-- the embedding model is being changed, each once more for the coming one.
create table episode_facts (
  tenant_id   text not null,
  episode_id  uuid not null,
  ordinal     integer not null,
  agent_id    uuid not null,
  user_id     text not null,
  kind        text not null check (kind in ('summary', 'fact', 'passage')),
  content     text not null,
  first_seq   integer,
  last_seq    integer,
  token_count integer not null,
  space_id    integer not null references embedding_spaces,
  embedding   vector not null,
  primary key (tenant_id, episode_id, ordinal, space_id),
  foreign key (tenant_id, episode_id) references episodes on delete cascade
);
create index episode_facts_scope on episode_facts (tenant_id, agent_id, user_id, space_id);

-- Semantic memory.
create table documents (
  tenant_id      text not null,
  document_id    uuid not null,
  agent_id       uuid not null,
  file_name      text not null,
  object_key     text not null,
  media_type     text not null,
  category       text,
  status         text not null default 'pending'
                 check (status in ('pending', 'indexing', 'indexed', 'failed', 'deleted')),
  failure_reason text,
  object_version text,
  sequencer      text,
  content_hash   text,
  size_bytes     bigint,
  chunk_count    integer not null default 0,
  token_count    integer not null default 0,
  created_by     text not null,
  created_at     timestamptz not null default now(),
  updated_at     timestamptz not null default now(),
  indexed_at     timestamptz,
  primary key (tenant_id, document_id),
  unique (tenant_id, object_key),
  foreign key (tenant_id, agent_id) references agents
);
create index documents_agent on documents (tenant_id, agent_id, created_at desc);

create table chunks (
  tenant_id   text not null,
  document_id uuid not null,
  ordinal     integer not null,
  agent_id    uuid not null,
  content     text not null,
  heading     text,
  page        integer,
  token_count integer not null,
  space_id    integer not null references embedding_spaces,
  embedding   vector not null,
  primary key (tenant_id, document_id, ordinal),
  foreign key (tenant_id, document_id) references documents on delete cascade
);
create index chunks_scope on chunks (tenant_id, agent_id, space_id);

-- Procedural memory. agent_id null means shared by all agents of the tenant.
create table procedures (
  tenant_id              text not null,
  procedure_id           uuid not null,
  agent_id               uuid,
  name                   text not null,
  description            text not null,
  trigger_kind           text not null check (trigger_kind in ('regex', 'glob', 'phrases')),
  trigger_pattern        text not null,
  example_phrases        text[] not null default '{}',
  priority               integer not null default 0,
  steps                  jsonb not null,
  status                 text not null check (status in ('pending', 'approved', 'rejected')),
  is_active              boolean not null default true,
  version                integer not null default 1,
  created_by             text not null,
  source_conversation_id uuid,
  reviewed_by            text,
  reviewed_at            timestamptz,
  review_note            text,
  created_at             timestamptz not null default now(),
  updated_at             timestamptz not null default now(),
  primary key (tenant_id, procedure_id),
  foreign key (tenant_id, agent_id) references agents
);
create unique index procedures_name on procedures (tenant_id, agent_id, name) nulls not distinct
  where status <> 'rejected';

-- The vectors of a procedure: its name, its description and each example phrase.
create table procedure_vectors (
  tenant_id    text not null,
  procedure_id uuid not null,
  ordinal      integer not null,
  space_id     integer not null references embedding_spaces,
  embedding    vector not null,
  primary key (tenant_id, procedure_id, ordinal, space_id),
  foreign key (tenant_id, procedure_id) references procedures on delete cascade
);

create table procedure_versions (
  tenant_id    text not null,
  procedure_id uuid not null,
  version      integer not null,
  snapshot     jsonb not null,
  changed_by   text not null,
  changed_at   timestamptz not null default now(),
  primary key (tenant_id, procedure_id, version),
  foreign key (tenant_id, procedure_id) references procedures on delete cascade
);

-- Who erased whose memory, and how much of it; no content.
create table erasures (
  tenant_id  text not null,
  erasure_id uuid not null,
  user_id    text not null,
  agent_id   uuid,
  erased_by  text not null,
  counts     jsonb not null,
  erased_at  timestamptz not null default now(),
  primary key (tenant_id, erasure_id)
);

do $$
declare
  t text;
begin
  foreach t in array array['agents', 'conversations', 'turns', 'messages', 'feedback', 'episodes', 'episode_facts',
                           'documents', 'chunks', 'procedures', 'procedure_vectors', 'procedure_versions', 'erasures']
  loop
    execute format('alter table %I enable row level security', t);
    execute format('alter table %I force row level security', t);
    execute format('create policy tenant on %I using (tenant_id = current_tenant()) '
                   'with check (tenant_id = current_tenant())', t);
    execute format('grant select, insert, update, delete on %I to octopus_app', t);
  end loop;
end
$$;
revoke update, delete on erasures from octopus_app;
grant select, insert on embedding_spaces to octopus_app;

-- The sweep looks for sessions to end across tenants. It sees when a session was last used, and nothing that was said.
create policy sweep on conversations for select to octopus_sweep using (true);
create policy sweep on episodes for select to octopus_sweep using (true);
create policy sweep on agents for select to octopus_sweep using (true);
grant select (tenant_id, conversation_id, agent_id, status, last_seq, started_at, last_message_at, ended_at, end_reason)
  on conversations to octopus_sweep;
grant select (tenant_id, conversation_id) on episodes to octopus_sweep;
grant select (tenant_id, agent_id, memory_config) on agents to octopus_sweep;
