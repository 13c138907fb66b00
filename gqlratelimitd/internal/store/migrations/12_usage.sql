-- What tenants have used, as the store of budgets has counted it. Minutes and hours are counted since 1970, in UTC; names are any bytes. Numbers are absolute
-- and only grow: what is read again replaces them only if it is more. Days and months are sums of hours.
CREATE TABLE usage_minute (
	tenant     {bytes} NOT NULL,
	at         {integer} NOT NULL,
	-- How much it is to be believed: exact or local.
	grade      {text} NOT NULL,
	unit       {bytes} NOT NULL,
	-- The coordinate of a root field, empty for a unit as a whole.
	field      {bytes} NOT NULL,
	-- What tells a count from one that was lost or forgotten before it. Those of all generations are added up.
	generation {integer} NOT NULL,
	charged    {integer} NOT NULL,
	given_back {integer} NOT NULL,
	calls      {integer} NOT NULL,
	PRIMARY KEY (tenant, at, grade, unit, field, generation)
){clustered};
CREATE TABLE usage_hour (
	tenant     {bytes} NOT NULL,
	at         {integer} NOT NULL,
	grade      {text} NOT NULL,
	unit       {bytes} NOT NULL,
	field      {bytes} NOT NULL,
	generation {integer} NOT NULL,
	charged    {integer} NOT NULL,
	given_back {integer} NOT NULL,
	calls      {integer} NOT NULL,
	PRIMARY KEY (tenant, at, grade, unit, field, generation)
){clustered};
-- What is read over all tenants. It has the numbers, so that a sum reads no row of the table.
CREATE INDEX usage_hour_at ON usage_hour (at, tenant, grade, unit, charged, given_back) WHERE length(field) = 0;

-- How many operations all instances together have refused.
CREATE TABLE refused_hour (
	tenant  {bytes} NOT NULL,
	at      {integer} NOT NULL,
	-- The limit, or what refused in the place of one.
	name    {bytes} NOT NULL,
	refused {integer} NOT NULL,
	PRIMARY KEY (tenant, at, name)
){clustered};
CREATE INDEX refused_hour_at ON refused_hour (at, tenant, name, refused);

-- The first minute and the first hour of which there are counts. What is older was forgotten.
CREATE TABLE usage_state (
	id           {integer} PRIMARY KEY CHECK (id = 1),
	minutes_from {integer} NOT NULL DEFAULT 0,
	hours_from   {integer} NOT NULL DEFAULT 0
){strict};
INSERT INTO usage_state (id) VALUES (1);

-- Of which time counts were collected: from the first minute on, and up to another one.
CREATE TABLE usage_pass (
	id        {integer} PRIMARY KEY CHECK (id = 1),
	began     {integer} NOT NULL,
	collected {integer} NOT NULL
){strict};

-- Times that nobody has collected, because the collector was away for longer than counts are kept elsewhere: in minutes since 1970. What was counted in them may be
-- lost, so that no line is ever removed.
CREATE TABLE usage_gap (
	first_minute {integer} PRIMARY KEY,
	until_minute {integer} NOT NULL CHECK (until_minute > first_minute)
){strict};
