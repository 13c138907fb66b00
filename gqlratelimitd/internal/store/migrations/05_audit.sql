-- The log: exact bytes, and the hashes of the tree over them.
CREATE TABLE audit_entry (
	sequence {integer} PRIMARY KEY,
	record   {bytes} NOT NULL,
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

CREATE TABLE audit_hash (
	id   {integer} PRIMARY KEY,
	hash {bytes} NOT NULL CHECK (length(hash) = 32)
){strict};

CREATE TABLE audit_checkpoint (
	id   {integer} PRIMARY KEY,
	size {integer} NOT NULL,
	note {bytes} NOT NULL
){strict};
CREATE INDEX audit_checkpoint_size ON audit_checkpoint (size, id);
