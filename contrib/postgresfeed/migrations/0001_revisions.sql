-- Every revision, byte for byte as it was published.
CREATE TABLE {schema}.policy_revision (
	name      text   NOT NULL,
	number    bigint NOT NULL CHECK (number BETWEEN 1 AND 9007199254740991),
	hash      bytea  NOT NULL CHECK (octet_length(hash) = 32),
	document  bytea  NOT NULL,
	author    text   NOT NULL DEFAULT '',
	reason    text   NOT NULL DEFAULT '',
	-- NULL where nobody knows.
	published timestamptz,
	signature bytea  NOT NULL DEFAULT '',
	PRIMARY KEY (name, number)
);

-- Which revision is the newest one. Who publishes locks the row until the end of the transaction.
CREATE TABLE {schema}.policy_head (
	name   text PRIMARY KEY,
	-- NULL before the first revision.
	number bigint,
	FOREIGN KEY (name, number) REFERENCES {schema}.policy_revision
);
