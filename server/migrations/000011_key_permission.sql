-- oldest program: 11
--
-- What a key is limited to. Null means everything that its scope allows, as for every key before. A program
-- that doesn't know the column would not enforce the limit, so it must not start.

alter table api_key
  add column permissions text[],
  add constraint api_key_permissions_check check (
    cardinality(permissions) > 0
      and permissions <@ array['events:write', 'events:read', 'exports', 'webhooks', 'audit']);
