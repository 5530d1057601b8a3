-- oldest program: 2
--
-- Which secret key the nodes of this database use, as a fingerprint that reveals nothing about the key.
-- At most one row. The first node inserts it, and nodes with another key refuse to start. Only the owner
-- can replace it: `annals secret-key accept`.
create table secret_key_identity (
  is_only     boolean primary key default true check (is_only),
  fingerprint bytea not null,
  created_at  timestamptz not null
);
grant select, insert on secret_key_identity to annals_serving;
