-- oldest program: 2
--
-- What lets a reader take single parts of a file, and what keeps the archive free of stray files.

-- The digest of the file's footer, which has the digests of its row groups: with it, any part of a
-- file can be read and checked by itself. Null for files of before: those are read as a whole.
alter table segment add column footer_sha256 bytea;

-- A file that is being written. It is noted before, and removed from here when the catalogue names
-- it; what a crash left behind is deleted from the storage by the next archiver.
create table segment_draft (
  workspace_id uuid not null,
  object_key   text not null,
  created_at   timestamptz not null,
  primary key (workspace_id, object_key)
);
grant select, insert, delete on segment_draft to annals_keeper;

-- Jobs that ended long ago are deleted.
create index export_job__finished on export_job (finished_at) where finished_at is not null;
grant delete on export_job to annals_serving;
