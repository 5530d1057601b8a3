-- oldest program: 20
--
-- The allowlist of a company can apply to its dashboard. An older program would let members in from anywhere.

alter table company add column allowlist_for_dashboard boolean not null default false;
