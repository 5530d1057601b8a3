-- oldest program: 8
--
-- A block now says in which of its slices a token may be, and which events have its frequent tokens. The worker
-- builds the blocks of the events in the table again.
truncate search_block, search_watermark;

alter table search_block
  -- How many events a slice has, except for the last one.
  add column slice_events integer check (slice_events > 0),
  -- A Bloom filter of the tokens and their slices, in buckets of 128 bytes. Null: nothing is known about the events.
  add column slice_tokens bytea check (octet_length(slice_tokens) % 128 = 0),
  -- A random number that the hashes in the postings depend on.
  add column seed bigint,
  -- The timestamp, category and action of each event. Null: the events have to be read to count them.
  add column facts bytea,
  -- Which events have the frequent tokens: 64 lists, after a table of their ends.
  add column postings bytea,
  add check ((slice_events is null) = (slice_tokens is null)),
  add check ((facts is null) = (postings is null) and (facts is null) = (seed is null));
-- Not compressed, so that PostgreSQL can read a part of a value without the rest.
alter table search_block alter column slice_tokens set storage external;
alter table search_block alter column facts set storage external;
alter table search_block alter column postings set storage external;
-- Only older programs use these. Without them, they read every block.
alter table search_block alter column tokens set default '';
