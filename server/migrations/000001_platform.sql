-- oldest program: 1
--
-- Roles, and what the service knows about itself.

-- Roles belong to the server, so another database on it may have created them already. If the login
-- can't create roles, docs/operations.md has the statements to run first.
do $$
declare
  -- Before PostgreSQL 16, every member of a role can act as it. Since then, it takes the option SET, which
  -- the creator of a role doesn't have automatically.
  needed text := case when current_setting('server_version_num')::int >= 160000 then 'set' else 'member' end;
begin
  if not exists (select from pg_roles where rolname = 'annals_serving') then
    create role annals_serving nologin;
  end if;
  if not exists (select from pg_roles where rolname = 'annals_keeper') then
    create role annals_keeper nologin;
  end if;
  if not pg_has_role(current_user, 'annals_serving', needed) then
    execute format('grant annals_serving to %I', current_user);
  end if;
  if not pg_has_role(current_user, 'annals_keeper', needed) then
    execute format('grant annals_keeper to %I', current_user);
  end if;
end
$$;

grant select on schema_migration to annals_serving, annals_keeper;

-- The secret key that the nodes of this database use, as a fingerprint that reveals nothing about the key.
-- At most one row. The first node inserts it, and nodes with another key refuse to start. Only the owner of
-- the table can replace it: `annals secret-key accept`.
create table secret_key_identity (
  is_only     boolean primary key default true check (is_only),
  fingerprint bytea not null,
  created_at  timestamptz not null
);
grant select, insert on secret_key_identity to annals_serving;
