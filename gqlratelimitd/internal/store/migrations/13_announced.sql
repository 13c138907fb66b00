-- How much of the audit log has arrived where changes are announced: entries with a smaller sequence have.
CREATE TABLE announced (
	name {text} PRIMARY KEY,
	next {integer} NOT NULL
){strict};
