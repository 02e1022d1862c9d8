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

-- The words of a text, of what is stored and of what is asked alike. A slash is a blank: and/or, client/server would each
-- be one word, the name of a file.
create function words_of(content text) returns tsvector
  language sql immutable strict parallel safe
  return to_tsvector('english', translate(content, '/', ' '));

-- The day of a moment, by UTC, as one may ask for it: 7 May 2023, 2023-05-07. Immutable, for the names of months are
-- English whatever the locale.
create function day_in_words(moment timestamptz) returns text
  language sql immutable strict parallel safe
  return to_char(moment at time zone 'UTC', 'FMDD FMMonth YYYY-MM-DD');

-- Words beside the vectors: names and numbers that an embedding blurs. said_on: the day of the session in words, which
-- are searched with the content and never shown.
alter table episode_facts
  add column said_on text not null default '',
  add column lexemes tsvector not null generated always as (words_of(content || ' ' || said_on)) stored;
