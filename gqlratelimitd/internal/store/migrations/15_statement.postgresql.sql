-- What tenants have used in periods that are frozen, as signed texts. They never change: the second line, the first is that the role of the daemon may do no such
-- thing. Days are counted since 1970.
CREATE TABLE usage_statement (
	number     bigint PRIMARY KEY,
	tenant     text NOT NULL,
	first_day  bigint NOT NULL,
	until_day  bigint NOT NULL CHECK (until_day > first_day),
	-- The number of the statement in whose place this one is, 0 for none. A period has one first statement, and each has one correction.
	corrects   bigint NOT NULL,
	frozen     bigint NOT NULL,
	-- The SHA-256 of the text, and the text with its signature.
	hash       bytea NOT NULL CHECK (length(hash) = 32),
	note       bytea NOT NULL,
	UNIQUE (tenant, first_day, until_day, corrects)
);
CREATE INDEX usage_statement_tenant ON usage_statement (tenant, number);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON usage_statement EXECUTE FUNCTION append_only();
