-- oldest program: 21
--
-- The running nodes. Each renews its row every few seconds. A node whose row is too old has ended without
-- a shutdown, or is paused. Not logged, because after a crash of the database, all nodes add their rows again. Backups
-- leave out such tables.
create unlogged table node (
  id      uuid primary key,
  role    text collate "C" not null,
  -- The database's time.
  seen_at timestamptz not null
);

grant select, insert, update, delete on node to annals_serving;
