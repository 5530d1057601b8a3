-- oldest program: 2
--
-- Readers of the archive check its identity before they report a segment as missing.
grant select on archive_identity to annals_serving;
