-- oldest program: 21
--
-- What each witness has cosigned last, of each chain. The cosignatures of the newest checkpoint are served with it.
create table cosignature (
  workspace_id uuid not null,
  -- The verifier key of the witness.
  witness      text collate "C" not null,
  size         bigint not null check (size >= 0),
  root         bytea not null check (octet_length(root) = 32),
  -- A signature line of the note, with its line break.
  line         text collate "C" not null check (length(line) <= 1024),
  primary key (workspace_id, witness)
) with (fillfactor = 50);

grant select, insert, update on cosignature to annals_serving;
