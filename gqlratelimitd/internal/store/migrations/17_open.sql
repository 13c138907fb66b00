-- What is open is found without what is over: there is little of it beside all that there ever was.
CREATE INDEX override_holds ON override_intent (tenant, (CASE expires WHEN 0 THEN 9223372036854775807 ELSE expires END)) WHERE document IS NOT NULL;
CREATE INDEX override_waits ON override_intent (tenant, revision) WHERE applied < revision;
