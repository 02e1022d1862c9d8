-- How a session ends once, and becomes an episode once.

alter table conversations
  add column end_requested_at    timestamptz,       -- the agent asked, during a turn, to end the session
  add column announced_at        timestamptz,       -- when its end was last put on the bus
  add column announcements       integer not null default 0,
  add column episode_claim       text,              -- who is making the episode now, and for how long at most
  add column episode_claim_until timestamptz,
  add column episode_settled_at  timestamptz,       -- the episode is written, or none is wanted
  add column archived_at         timestamptz;       -- messages and passages are gone

create index conversations_unsettled on conversations (announced_at)
  where status = 'ended' and episode_settled_at is null;
create index conversations_kept on conversations (ended_at) where status = 'ended' and archived_at is null;
create index conversations_archived on conversations (ended_at) where archived_at is not null;

grant select (end_requested_at, announced_at, announcements, episode_settled_at, archived_at)
  on conversations to octopus_sweep;

-- Words beside the vectors: names and numbers that an embedding blurs.
alter table episode_facts
  add column lexemes tsvector not null generated always as (to_tsvector('english', content)) stored;
