-- oldest program: 2
--
-- What the explorer counts by, made from the chains after the fact: nothing of it is written with an
-- event, and all of it can be made again from the table. Sharded by workspace_id like the events.

-- How far a workspace is counted. The roll-up holds the events above floor_seq, up to seen_seq; those
-- above are counted live by whoever asks.
create table rollup_head (
  workspace_id uuid primary key,
  floor_seq    bigint not null,
  seen_seq     bigint not null,
  -- Usage is counted once, also where the rest is made again.
  day_seq      bigint not null,
  advanced_at  timestamptz not null,
  check (floor_seq <= seen_seq)
) with (fillfactor = 50);

-- Events by their own timestamp, in quarter hours and again in six hours, so that a month is few rows.
create table event_rollup (
  workspace_id uuid not null,
  grain_s      integer not null,
  bucket       timestamptz not null,
  category     text collate "C" not null,
  action       text collate "C" not null,
  events       bigint not null check (events > 0),
  primary key (workspace_id, grain_s, bucket, category, action)
) with (fillfactor = 80);

-- The distinct values of a field.
create table event_value (
  workspace_id uuid not null,
  field        text collate "C" not null,
  value        text collate "C" not null,
  events       bigint not null check (events > 0),
  primary key (workspace_id, field, value)
) with (fillfactor = 80);

-- How many values a field has. A field with too many takes no new ones; dropped_seq is the last event
-- whose value was left out, so the list is whole again when that event is no longer counted.
create table event_field (
  workspace_id uuid not null,
  field        text collate "C" not null,
  value_count  bigint not null,
  dropped_seq  bigint not null,
  primary key (workspace_id, field)
) with (fillfactor = 50);

-- Usage by the day of receipt (UTC). It stays when events are archived.
create table event_day (
  workspace_id uuid not null,
  day          date not null,
  events       bigint not null,
  bytes        bigint not null,
  primary key (workspace_id, day)
) with (fillfactor = 50);

grant select, insert, update, delete on
  rollup_head, event_rollup, event_value, event_field, event_day to annals_serving, annals_keeper;
