-- oldest program: 20
--
-- A sign-in with OpenID Connect links an account only after the second factor. Until then, the challenge has the
-- person's name at the identity provider and their groups. An older program ignores them and doesn't link the
-- account, so the next sign-in does.

alter table sign_in_challenge
  add column issuer  text collate "C" check (length(issuer) <= 500),
  add column subject text collate "C" check (length(subject) between 1 and 255),
  add column groups  text[] collate "C" check (cardinality(groups) <= 1000),
  add check (num_nulls(issuer, subject, groups) in (0, 3));
