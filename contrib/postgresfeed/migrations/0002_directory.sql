-- Which change of a directory is the newest one. Who writes a record locks the row until the end of the transaction, so that
-- changes are numbered in the order in which they are committed.
CREATE TABLE {schema}.directory_head (
	name     text   PRIMARY KEY,
	-- Another one for each history.
	origin   text   NOT NULL CHECK (octet_length(origin) BETWEEN 1 AND 64),
	revision bigint NOT NULL DEFAULT 0 CHECK (revision BETWEEN 0 AND 9007199254740991)
) WITH (fillfactor = 50);

-- The record of each tenant that has or had one. Names of tenants are bytes: a text of PostgreSQL has no zero.
CREATE TABLE {schema}.directory_record (
	name     text   NOT NULL REFERENCES {schema}.directory_head,
	tenant   bytea  NOT NULL CHECK (octet_length(tenant) BETWEEN 1 AND 256),
	-- The last change.
	revision bigint NOT NULL,
	-- NULL since it was removed.
	document bytea,
	PRIMARY KEY (name, tenant),
	UNIQUE (name, revision)
);
