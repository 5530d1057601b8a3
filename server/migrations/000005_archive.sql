-- oldest program: 5
--
-- The archive: its catalog, drafts and identity.

-- Which run of a chain is in which file. The runs of a workspace follow each other without gaps, from its
-- first event on. Later events are in the table event. A row is inserted after its file was read back and
-- every hash was recomputed, and before events are deleted.
create table segment (
  workspace_id    uuid not null,
  first_seq       bigint not null,
  last_seq        bigint not null,
  object_key      text not null,
  bytes           bigint not null,
  sha256          bytea not null,
  first_prev_hash bytea not null,
  last_hash       bytea not null,
  last_id         uuid not null,
  min_ts          timestamptz not null,
  max_ts          timestamptz not null,
  min_received_at timestamptz not null,
  max_received_at timestamptz not null,
  created_at      timestamptz not null,
  -- The footer has the digest of each row group, so that parts of a file can be read and verified separately.
  footer_sha256   bytea not null,
  primary key (workspace_id, first_seq),
  unique (workspace_id, last_seq),
  check (first_seq >= 1 and last_seq >= first_seq)
);

-- A file that is being written. The row is inserted before the file is written and deleted when the catalog
-- names the file. The next archiver deletes files that a crash left behind.
create table segment_draft (
  workspace_id uuid not null,
  object_key   text not null,
  created_at   timestamptz not null,
  primary key (workspace_id, object_key)
);

-- The archive that this database uses: the storage with the marker file annals-archive-<archive_id>. At most
-- one row. The first archiver inserts it, and archivers with another storage refuse to work.
create table archive_identity (
  is_only    boolean primary key default true check (is_only),
  archive_id text not null,
  created_at timestamptz not null
);

grant select on segment to annals_serving;
grant select, insert on segment to annals_keeper;
grant select, insert, delete on segment_draft to annals_keeper;
-- Readers check the identity before they report a segment as missing.
grant select on archive_identity to annals_serving;
grant select, insert on archive_identity to annals_keeper;
