-- Which steps of the schema there are.
CREATE TABLE migration (
	step {integer} PRIMARY KEY,
	-- Times are microseconds since 1970.
	at   {integer} NOT NULL
){strict};

-- One row, which every change locks before it looks at anything else. So changes have one order, in which they are committed.
CREATE TABLE head (
	id        {integer} PRIMARY KEY CHECK (id = 1),
	-- The newest revision of the policy, 0 before the first.
	policy    {integer} NOT NULL DEFAULT 0,
	-- The newest change of a tenant, an override record or a mode switch.
	directory {integer} NOT NULL DEFAULT 0
){strict};

INSERT INTO head (id) VALUES (1);
