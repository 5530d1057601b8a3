-- oldest program: 2
--
-- Lists of export jobs by status: a company with many that ended found its few open ones by reading all
-- of them. Building it keeps new jobs waiting, for a third of a second with 100,000; ingest does not
-- touch this table.
create index export_job__status on export_job (company_id, status, created_at, id);
