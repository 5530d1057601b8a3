-- oldest program: 2
--
-- What makes the list of values quick to read: which of them are already in lower case, so that a
-- search folds only the others, and which are frequent, so that the first ones are found among few.

-- A program that does not know it adds values that are not marked: see event_field.frequent_seq.
alter table event_value
  add column is_folded boolean not null generated always as (value = lower(value)) stored,
  add column is_frequent boolean not null default false,
  drop constraint event_value_pkey;

alter table event_value
  add primary key (workspace_id, field, value) include (is_folded);

create index event_value__frequent on event_value (workspace_id, field) where is_frequent;

-- Every value with so many events is marked as frequent, as of the event frequent_seq. Where the
-- roll-up has seen another event since, somebody counted who does not mark.
alter table event_field
  add column frequent_from bigint not null default 1,
  add column frequent_seq bigint not null default -1;
