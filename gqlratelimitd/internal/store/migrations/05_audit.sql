-- The log: exact bytes, and the hash of each row and the row before it.
CREATE TABLE audit_entry (
	sequence {integer} PRIMARY KEY,
	record   {bytes} NOT NULL,
	hash     {bytes} NOT NULL CHECK (length(hash) = 32),
	-- What stands in the record, to find it.
	subject  {text} NOT NULL,
	action   {text} NOT NULL,
	target   {text} NOT NULL,
	tenant   {text} NOT NULL
){strict};
CREATE INDEX audit_subject ON audit_entry (subject, sequence);
CREATE INDEX audit_action ON audit_entry (action, sequence);
CREATE INDEX audit_target ON audit_entry (target, sequence);
CREATE INDEX audit_tenant ON audit_entry (tenant, sequence);
