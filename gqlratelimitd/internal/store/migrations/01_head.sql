-- Which steps of the schema there are.
CREATE TABLE migration (
	step {integer} PRIMARY KEY,
	-- Times are microseconds since 1970, 0 for none.
	at   {integer} NOT NULL
){strict};

-- One row, which every change locks before it looks at anything else. So changes have one order, in which they are committed.
CREATE TABLE head (
	id        {integer} PRIMARY KEY CHECK (id = 1),
	-- The newest revision of the policy, 0 before the first.
	policy    {integer} NOT NULL DEFAULT 0,
	-- The newest change of a tenant or an override, 0 before the first.
	directory {integer} NOT NULL DEFAULT 0,
	-- How many messages were ever put into the outbox.
	outbox    {integer} NOT NULL DEFAULT 0
){strict};

INSERT INTO head (id) VALUES (1);

-- What has to be told to others: of each thing at most one message, that it has changed.
CREATE TABLE outbox (
	sequence {integer} NOT NULL UNIQUE,
	kind     {text} NOT NULL,
	name     {bytes} NOT NULL,
	revision {integer} NOT NULL,
	at       {integer} NOT NULL,
	PRIMARY KEY (kind, name)
){strict};

-- What one daemon does at a time, and who that is. Who holds a lease counts its beat on, and whoever sees it stand still takes it.
CREATE TABLE lease (
	name   {text} PRIMARY KEY,
	holder {text} NOT NULL,
	beat   {integer} NOT NULL
){strict};

-- What was answered to a request, by a hash of who asked and of the key, for some time.
CREATE TABLE answer (
	id      {bytes} PRIMARY KEY,
	-- A hash of what was asked.
	request {bytes} NOT NULL,
	body    {bytes} NOT NULL,
	expires {integer} NOT NULL
){strict};
CREATE INDEX answer_expires ON answer (expires);
