-- What tenants have used in periods that are frozen, as signed texts. They never change. Days are counted since 1970.
CREATE TABLE usage_statement (
	number     INTEGER PRIMARY KEY,
	tenant     TEXT NOT NULL,
	first_day  INTEGER NOT NULL,
	until_day  INTEGER NOT NULL CHECK (until_day > first_day),
	-- The number of the statement in whose place this one is, 0 for none. A period has one first statement, and each has one correction.
	corrects   INTEGER NOT NULL,
	frozen     INTEGER NOT NULL,
	-- The SHA-256 of the text, and the text with its signature.
	hash       BLOB NOT NULL CHECK (length(hash) = 32),
	note       BLOB NOT NULL,
	UNIQUE (tenant, first_day, until_day, corrects)
) STRICT;
CREATE INDEX usage_statement_tenant ON usage_statement (tenant, number);
CREATE TRIGGER usage_statement_update BEFORE UPDATE ON usage_statement BEGIN SELECT RAISE(ABORT, 'usage_statement is append-only'); END;
CREATE TRIGGER usage_statement_delete BEFORE DELETE ON usage_statement BEGIN SELECT RAISE(ABORT, 'usage_statement is append-only'); END;
