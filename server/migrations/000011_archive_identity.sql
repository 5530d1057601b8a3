-- oldest program: 2
--
-- Which archive this database uses: the storage that has the marker file annals-archive-<archive_id>.
-- At most one row. The first archiver inserts it, and archivers with another storage refuse to work.
create table archive_identity (
  is_only    boolean primary key default true check (is_only),
  archive_id text not null,
  created_at timestamptz not null
);
grant select, insert on archive_identity to annals_keeper;
