-- oldest program: 8
--
-- Finds the segment that can contain an event by its id.
create index segment__last_id on segment (workspace_id, last_id);
