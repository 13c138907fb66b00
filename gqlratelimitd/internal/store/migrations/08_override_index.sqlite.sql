-- What holds now over all tenants: what was set last, and what ends first.
ALTER TABLE override_intent ADD COLUMN blocked {integer} NOT NULL DEFAULT 0;
ALTER TABLE override_unmanaged ADD COLUMN blocked {integer} NOT NULL DEFAULT 0;
UPDATE override_intent SET blocked = 1 WHERE instr(document, CAST('"blocked":true' AS BLOB)) > 0;
UPDATE override_unmanaged SET blocked = 1 WHERE instr(document, CAST('"blocked":true' AS BLOB)) > 0;
CREATE INDEX override_set ON override_intent ((-at), revision);
CREATE INDEX override_end ON override_intent ((CASE expires WHEN 0 THEN 9223372036854775807 ELSE expires END), revision);
