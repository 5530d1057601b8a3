-- oldest program: 20
--
-- The Merkle tree over each chain, and its newest signed checkpoint. What the signer trusts is in the storage of
-- the archive; these tables are what it publishes, and can be rebuilt from the chain.

-- Hash tiles of height 8, as in C2SP tlog-tiles. Only the last tile of each level can grow.
create table tree_tile (
  workspace_id uuid not null,
  level        smallint not null check (level between 0 and 7),
  number       bigint not null check (number >= 0),
  hashes       bytea not null,
  primary key (workspace_id, level, number),
  check (octet_length(hashes) between 32 and 8192 and octet_length(hashes) % 32 = 0)
) with (
  -- A growing tile is replaced with each checkpoint. Old versions must not add up to a large part of the table.
  autovacuum_vacuum_scale_factor = 0.02,
  toast.autovacuum_vacuum_scale_factor = 0.02
);
-- Hashes can't be compressed.
alter table tree_tile alter column hashes set storage external;

-- One row per chain. Without a size, no checkpoint is published yet.
create table checkpoint (
  workspace_id uuid primary key,
  -- The tiles contain at least this many leaves. Each change to the tiles also moves it, in the same transaction.
  tree_size    bigint not null check (tree_size >= 0),
  size         bigint check (size >= 0),
  origin       text collate "C",
  root         bytea check (octet_length(root) = 32),
  note         text collate "C",
  vkey         text collate "C",
  signed_at    timestamptz,
  -- Why the signer refuses to sign this chain. Null while it signs.
  refusal      text collate "C",
  check (num_nulls(size, origin, root, note, vkey, signed_at) in (0, 6))
) with (fillfactor = 50);

-- Which node signs. It only saves work: a write to the storage decides between two signers.
create table signer_lease (
  is_only    boolean primary key default true check (is_only),
  holder     uuid not null,
  expires_at timestamptz not null
);

grant select, insert, update on tree_tile, checkpoint, signer_lease to annals_serving;
