-- oldest program: 21
--
-- Stores large metadata as it is. To compress values that barely shrink, such as lists of random strings, takes the
-- writer 20 ms per event of 250 kB, while other companies' events wait. The archive compresses them instead.
alter table event alter column metadata set storage external;

-- As before, but a new partition stores its columns like the others.
create or replace function ensure_event_partition(month timestamptz) returns boolean
language plpgsql as $$
declare
  starts  timestamptz := date_trunc('month', month, 'UTC');
  ends    timestamptz := date_trunc('month', starts + interval '32 days', 'UTC');
  name    text := 'event_' || to_char(starts at time zone 'UTC', 'YYYY_MM');
begin
  -- Several nodes maintain the partitions, one at a time.
  perform pg_advisory_xact_lock(4207002);
  if to_regclass(name) is not null then
    return false;
  end if;
  execute format(
    'create table %I (like event including defaults including constraints including storage)', name);
  execute format('create unique index %I on %I (workspace_id, seq)', name || '__seq', name);
  -- Writers wait from here until the rows are moved.
  lock table event_default in access exclusive mode;
  execute format(
    'with moved as (delete from event_default where id >= $1 and id < $2 returning *)
     insert into %I select * from moved', name)
    using event_id_floor(starts), event_id_floor(ends);
  execute format(
    'alter table event attach partition %I for values from (%L) to (%L)',
    name, event_id_floor(starts), event_id_floor(ends));
  return true;
end
$$;
