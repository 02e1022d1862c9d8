-- A change of the embedding model: every text gets a vector of the coming space beside that of the current one, while
-- recall goes on with the current one. infra/decisions.md says why the rows are doubled and not the columns.

-- What still has to be done before a space is complete (or, of one that has been left, empty), a document, an episode or
-- a procedure at a time. stamp moves when a text is added to it; taken_until: somebody is at it.
create table embedding_backlog (
  tenant_id   text not null,
  space_id    integer not null references embedding_spaces,
  memory      text not null check (memory in ('documents', 'episodes', 'procedures')),
  item_id     uuid not null,
  stamp       bigint not null default 1,
  taken_until timestamptz,
  primary key (space_id, memory, tenant_id, item_id)
);
alter table embedding_spaces add column total jsonb not null default '{}'; -- by memory, when the work was begun

alter table embedding_backlog enable row level security;
alter table embedding_backlog force row level security;
create policy tenant on embedding_backlog using (tenant_id = current_tenant()) with check (tenant_id = current_tenant());
grant select, insert, update on embedding_backlog to octopus_app;

-- The sweep's role changes spaces. It sees which documents, episodes and procedures there are, and nothing of them.
create policy sweep on embedding_backlog to octopus_sweep using (true) with check (true);
create policy sweep on documents for select to octopus_sweep using (true);
create policy sweep on procedures for select to octopus_sweep using (true);
grant select, insert, update, delete on embedding_backlog to octopus_sweep;
grant select, insert, update on embedding_spaces to octopus_sweep;
grant select (tenant_id, document_id) on documents to octopus_sweep;
grant select (tenant_id, episode_id) on episodes to octopus_sweep;
grant select (tenant_id, procedure_id) on procedures to octopus_sweep;

-- Vectors are written into the current space or the coming one; during a change, what is written into the current one
-- is noted. By now the foreign key holds the row of the space, for which whoever begins or ends a change waits, so the
-- answer stands until this transaction ends. The arguments are the memory and the column of the item's id.
create function keep_to_spaces() returns trigger
  language plpgsql as
$$
declare
  current_id integer := (select space_id from embedding_spaces where state = 'current');
  coming_id  integer := (select space_id from embedding_spaces where state = 'coming');
begin
  if exists (select from written where space_id is distinct from current_id and space_id is distinct from coming_id) then
    raise exception 'the embedding model has been changed' using errcode = 'object_not_in_prerequisite_state';
  end if;
  if coming_id is not null then
    execute format(
      'insert into embedding_backlog as b (tenant_id, space_id, memory, item_id)
       select distinct tenant_id, $1, %L, %I from written where space_id = $2 order by 1, 4
       on conflict (space_id, memory, tenant_id, item_id) do update set stamp = b.stamp + 1', tg_argv[0], tg_argv[1])
    using coming_id, current_id;
  end if;
  return null;
end
$$;
create trigger keep_to_spaces after insert on chunks
  referencing new table as written for each statement execute function keep_to_spaces('documents', 'document_id');
create trigger keep_to_spaces after insert on episode_facts
  referencing new table as written for each statement execute function keep_to_spaces('episodes', 'episode_id');
create trigger keep_to_spaces after insert on procedure_vectors
  referencing new table as written for each statement execute function keep_to_spaces('procedures', 'procedure_id');

-- Beside those of 0040: the other dimensions that an embedder has. Each space is searched by the index of its dimensions.
create index chunks_nearest_256 on chunks using hnsw ((near::halfvec(256)) halfvec_cosine_ops)
  where vector_dims(near) = 256;
create index chunks_nearest_512 on chunks using hnsw ((near::halfvec(512)) halfvec_cosine_ops)
  where vector_dims(near) = 512;
