-- oldest program: 2
--
-- The distinct values of a field once more, hundreds in a row, to be searched for a text: the rows of
-- event_value are written again with every count, and to look through 60,000 of them takes up to 75 ms.
-- Through these it takes 2 ms. A value may be here that is no longer in event_value, or be here twice.
create table event_value_block (
  workspace_id uuid not null,
  field        text collate "C" not null,
  block        bigint not null generated always as identity,
  size         integer not null,
  -- The values in lower case, one after the other. What holds a text is looked for in `items` then.
  folded       text collate "C" not null,
  items        text[] collate "C" not null,
  primary key (workspace_id, field, block)
);

-- Compressed they would take longer to read than to search.
alter table event_value_block
  alter column folded set storage external,
  alter column items set storage external;

grant select, insert, delete on event_value_block to annals_serving, annals_keeper;

-- The blocks of a field have every value as of the event listed_seq, down to the event listed_floor.
-- Where the roll-up has seen another event since, or an older one again, somebody counted who does not
-- know them: then the values are looked through one by one, until the next run has made the blocks anew.
alter table event_field
  add column listed_seq   bigint not null default -1,
  add column listed_floor bigint not null default 0;
