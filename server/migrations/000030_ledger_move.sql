-- oldest program: 21
--
-- Moves of the ledger to another database: `annals move`.

-- At most one row, which only the owner of the table writes.
create table ledger_move (
  is_only    boolean primary key default true check (is_only),
  -- The same in both databases.
  id         uuid not null,
  -- LEAVING: is being copied to another database. LEFT: was moved there. ARRIVING: the copy in this database is not
  -- complete.
  state      text collate "C" not null check (state in ('LEAVING', 'LEFT', 'ARRIVING')),
  -- Where the other database is, without a login.
  other      text not null,
  changed_at timestamptz not null default now()
);
grant select on ledger_move to annals_serving, annals_keeper;

-- `annals move` adds this as a trigger to all tables of the database that it copies.
create function refuse_moved_ledger() returns trigger
language plpgsql as $$
declare
  moved_to text;
begin
  -- The mover holds this lock exclusively while it takes the last step. PostgreSQL releases it when the mover's
  -- connection ends. Held in shared mode, it makes the last step wait for the end of this transaction.
  if not pg_try_advisory_xact_lock_shared(4207003) then
    raise exception 'the ledger is being moved to another database, so it can''t be changed for a few seconds'
      using errcode = 'read_only_sql_transaction';
  end if;
  -- After the lock, because the mover commits this before it releases the lock.
  select other into moved_to from ledger_move where state = 'LEFT';
  if found then
    raise exception 'the ledger was moved to %', moved_to using errcode = 'read_only_sql_transaction';
  end if;
  return null;
end
$$;
