-- oldest program: 21
--
-- The token buckets of keys and companies that several nodes use at the same time, and how much they are
-- used. Not logged, because a bucket that is lost starts full again.
create unlogged table shared_rate (
  -- The id of a key or a company.
  name       uuid primary key,
  tokens     double precision not null,
  -- Tokens that the last report used, and that all reports asked for lately.
  used       double precision not null,
  wanted     double precision not null,
  per_second double precision not null,
  capacity   double precision not null,
  -- Milliseconds since the epoch, of the database's clock.
  renewed_ms double precision not null
);

grant select, insert, update, delete on shared_rate to annals_serving;
