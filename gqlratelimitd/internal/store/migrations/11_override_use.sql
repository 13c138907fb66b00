-- When something was last decided under an override, and when that was last another decision than without it. Both are observations, to a
-- minute, of which there is no entry in the audit log.
ALTER TABLE override_intent ADD COLUMN held {integer} NOT NULL DEFAULT 0;
ALTER TABLE override_intent ADD COLUMN mattered {integer} NOT NULL DEFAULT 0;
ALTER TABLE override_unmanaged ADD COLUMN held {integer} NOT NULL DEFAULT 0;
ALTER TABLE override_unmanaged ADD COLUMN mattered {integer} NOT NULL DEFAULT 0;
CREATE INDEX override_mattered ON override_intent ((-mattered), revision);
