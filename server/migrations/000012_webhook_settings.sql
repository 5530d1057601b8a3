-- oldest program: 12
--
-- A name, a filter and extra headers for webhooks. An older program would send events that the filter leaves
-- out, and would send them without the headers.

alter table webhook
  add column name           text,
  -- Which events to send: {"categories": [...], "actions": [...], ...}. Null for all.
  add column filter         jsonb,
  -- The filter for events up to and including project_since_seq, as past_project_id is the project.
  add column past_filter    jsonb,
  -- Events up to seen_seq that the project or the filter left out.
  add column filtered_count bigint not null default 0,
  -- The headers as JSON, encrypted with the service's secret key. Null if there are none.
  add column headers        bytea,
  add column header_names   text[] not null default '{}',
  add check ((headers is null) = (header_names = '{}'));
