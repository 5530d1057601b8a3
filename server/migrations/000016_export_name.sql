-- oldest program: 15
--
-- Export jobs can have a name.

alter table export_job add column name text;
