-- lock_migrations --
-- Wait for any other runner; the lock goes with the session
select pg_advisory_lock(hashtext('octopus_migrations'))

-- create_migrations --
-- What has been applied
create table if not exists schema_migrations (
  name       text primary key,
  checksum   text not null,
  applied_at timestamptz not null default now()
)

-- recorded_migrations --
-- Names and checksums of what has been applied, and how many seconds ago
select name, checksum, extract(epoch from clock_timestamp() - applied_at)::float8 from schema_migrations order by name

-- record_migration --
-- Note that a file has been applied
insert into schema_migrations (name, checksum) values (%s, %s)
