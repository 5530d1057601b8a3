-- oldest program: 8
--
-- Which runs of a chain a search can skip. A worker reads the chains after the events are stored, and the
-- archiver reads what the worker hasn't seen yet before it deletes it.

-- How far the events of a workspace are in blocks: above floor_seq, up to and including seen_seq. Each insert
-- into search_block also moves seen_seq, in the same transaction.
create table search_watermark (
  workspace_id uuid primary key,
  floor_seq    bigint not null,
  seen_seq     bigint not null,
  advanced_at  timestamptz not null,
  check (floor_seq <= seen_seq)
) with (fillfactor = 50);

-- One row per run of about a thousand events, archived or not. The runs have no gaps between them.
create table search_block (
  workspace_id uuid not null,
  first_seq    bigint not null,
  last_seq     bigint not null,
  min_ts       timestamptz not null,
  max_ts       timestamptz not null,
  -- A Bloom filter of the tokens of its events, in buckets of 128 bytes. Empty: nothing is known about them.
  tokens       bytea not null,
  primary key (workspace_id, first_seq),
  check (first_seq <= last_seq),
  check (octet_length(tokens) % 128 = 0)
);
-- Not compressed, so that PostgreSQL can read a bucket without the rest.
alter table search_block alter column tokens set storage external;

-- The values at a path of an event's metadata, as text, and null for an object or an array. A node has no
-- path here, only how many characters of the wanted one lead to it: a long path on each of many nodes would
-- fill the disk. The type json keeps the text of numbers, unlike jsonb.
create function metadata_value(metadata text, wanted text)
returns table (value text)
language sql immutable parallel safe cost 10000 rows 10 as $$
  with recursive node as (
    select 0 as used, metadata::json as value, 'object' as type
    union all
    select child.used, child.value, json_typeof(child.value)
      from node
     cross join lateral (
       select node.used + length(member.key) + 1 as used, member.value
         from json_each(node.value) as member
        where node.type = 'object' and node.used <= length(wanted)
          and starts_with(substr(wanted, node.used + 1) || '.', member.key || '.')
       union all
       select node.used, item.value
         from json_array_elements(node.value) as item
        where node.type = 'array'
     ) as child
     where node.type in ('object', 'array')
  )
  select case when node.type not in ('object', 'array') then coalesce(node.value #>> '{}', 'null') end
    from node
   where node.used = length(wanted) + 1
$$;

-- All values of an event's metadata, as text.
create function metadata_scalar(metadata text)
returns table (value text)
language sql immutable parallel safe cost 10000 rows 100 as $$
  with recursive node as (
    select metadata::json as value, 'object' as type
    union all
    select child.value, json_typeof(child.value)
      from node
     cross join lateral (
       select member.value from json_each(node.value) as member where node.type = 'object'
       union all
       select item.value from json_array_elements(node.value) as item where node.type = 'array'
     ) as child
     where node.type in ('object', 'array')
  )
  select coalesce(node.value #>> '{}', 'null') from node where node.type not in ('object', 'array')
$$;

grant select, insert, update on search_watermark to annals_serving, annals_keeper;
grant select, insert on search_block to annals_serving, annals_keeper;
