-- oldest program: 8
--
-- A problem that leaves an export job open has columns of its own: the error of a job is that of its end.

alter table export_job
  add column last_attempt_at      timestamptz,
  add column last_attempt_code    text,
  add column last_attempt_summary text;

-- When an existing problem occurred isn't known: a download had started, or the job was being created.
update export_job
   set last_attempt_at = coalesce(started_at, created_at), last_attempt_code = error_code,
       last_attempt_summary = failure_summary, error_code = null, failure_summary = null
 where status in ('PENDING', 'RUNNING') and error_code is not null;
