-- oldest program: 21
--
-- The copy of the list of signing keys, whose original is an object in the storage of the archive. Both contain a
-- code that only the secret key can create, so each can replace the other if it is lost or changed.
create table signing_key_list (
  is_only boolean primary key default true check (is_only),
  list    text collate "C" not null check (octet_length(list) <= 65536)
);

grant select, insert, update on signing_key_list to annals_serving;
