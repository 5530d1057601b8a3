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

-- The nodes of an event's metadata: their path and their text, which is null for an object or an array. With
-- `wanted`, only those at this path. The type json keeps the text of numbers, unlike jsonb.
create function metadata_node(metadata text, wanted text)
returns table (path text, value text)
language sql immutable parallel safe cost 10000 rows 10 as $$
  with recursive node as (
    select null::text as path, metadata::json as value, 'object' as type
    union all
    select child.path, child.value, json_typeof(child.value)
      from node
     cross join lateral (
       select case when node.path is null then member.key else node.path || '.' || member.key end as path,
              member.value
         from json_each(case when node.type = 'object' then node.value else '{}'::json end) as member
       union all
       select node.path, item.value
         from json_array_elements(case when node.type = 'array' then node.value else '[]'::json end) as item
     ) as child
     where wanted is null or child.path = wanted or starts_with(wanted, child.path || '.')
  )
  select node.path, case when node.type not in ('object', 'array') then coalesce(node.value #>> '{}', 'null') end
    from node
   where node.path is not null and (wanted is null or node.path = wanted)
$$;

grant select, insert, update on search_watermark to annals_serving, annals_keeper;
grant select, insert on search_block to annals_serving, annals_keeper;
