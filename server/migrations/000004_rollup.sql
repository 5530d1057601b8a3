-- oldest program: 4
--
-- What the explorer counts by. A worker computes it from the chains after the events are stored, and all of
-- it except the usage can be computed again.

-- How far a workspace is counted. The roll-up includes the events above floor_seq, up to and including
-- seen_seq. Requests count later events themselves.
create table rollup_head (
  workspace_id uuid primary key,
  floor_seq    bigint not null,
  seen_seq     bigint not null,
  -- The last event in the usage, which counts each event only once, even if the rest is counted again.
  day_seq      bigint not null,
  advanced_at  timestamptz not null,
  check (floor_seq <= seen_seq)
) with (fillfactor = 50);

-- Events by their own timestamp, per quarter hour and again per six hours, so that a month has few rows.
create table event_rollup (
  workspace_id uuid not null,
  grain_s      integer not null,
  bucket       timestamptz not null,
  category     text collate "C" not null,
  action       text collate "C" not null,
  events       bigint not null check (events > 0),
  primary key (workspace_id, grain_s, bucket, category, action)
) with (fillfactor = 80);

-- The distinct values of each field. A search skips `lower` for values that are folded, and a list finds the
-- most common values among those marked as frequent.
create table event_value (
  workspace_id uuid not null,
  field        text collate "C" not null,
  value        text collate "C" not null,
  events       bigint not null check (events > 0),
  is_folded    boolean not null generated always as (value = lower(value)) stored,
  is_frequent  boolean not null default false,
  primary key (workspace_id, field, value) include (is_folded)
) with (fillfactor = 80);
create index event_value__frequent on event_value (workspace_id, field) where is_frequent;

-- The same values, hundreds per row, for text search. Scanning 60,000 rows of event_value, which every count
-- rewrites, takes up to 75 ms; scanning these takes 2 ms. A value can be here twice, or be gone from
-- event_value.
create table event_value_block (
  workspace_id uuid not null,
  field        text collate "C" not null,
  block        bigint not null generated always as identity,
  size         integer not null,
  -- The values in lower case, one after the other. If the text is among them, the items are searched.
  folded       text collate "C" not null,
  items        text[] collate "C" not null,
  primary key (workspace_id, field, block)
);
-- Decompressing them would take longer than searching them.
alter table event_value_block
  alter column folded set storage external,
  alter column items set storage external;

create table event_field (
  workspace_id  uuid not null,
  field         text collate "C" not null,
  value_count   bigint not null,
  -- A field with too many values takes no new ones. This is the last event whose value was left out: the list
  -- is complete again when that event is no longer counted.
  dropped_seq   bigint not null,
  -- Every value with at least this many events is marked as frequent.
  frequent_from bigint not null default 1,
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
grant select, insert, delete on event_value_block to annals_serving, annals_keeper;
