-- Which mode switches of the Redis the audit log has, until they are gone there.
CREATE TABLE mode_noted (
	fingerprint {text} NOT NULL PRIMARY KEY,
	at          {integer} NOT NULL
){strict};
