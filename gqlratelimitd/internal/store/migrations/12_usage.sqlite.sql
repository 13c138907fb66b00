-- What tenants have used. Minutes, hours, days and months are counted since 1970, in UTC; names are any bytes. The numbers of minutes are absolute
-- and only grow: what is read again replaces them only if it is more. Hours, days and months are computed from the level below, never added to.
CREATE TABLE usage_minute (
	tenant     BLOB NOT NULL,
	minute     INTEGER NOT NULL,
	-- How much it is to be believed: exact or local.
	grade      TEXT NOT NULL,
	unit       BLOB NOT NULL,
	-- The coordinate of a root field, empty for a unit as a whole.
	field      BLOB NOT NULL,
	-- What tells a count from one that was lost or forgotten before it. Those of all generations are added up.
	generation INTEGER NOT NULL,
	charged    INTEGER NOT NULL,
	given_back INTEGER NOT NULL,
	calls      INTEGER NOT NULL,
	PRIMARY KEY (tenant, minute, grade, unit, field, generation)
) STRICT, WITHOUT ROWID;
CREATE TABLE usage_hour (
	tenant BLOB NOT NULL, at INTEGER NOT NULL, grade TEXT NOT NULL, unit BLOB NOT NULL, field BLOB NOT NULL,
	charged INTEGER NOT NULL, given_back INTEGER NOT NULL, calls INTEGER NOT NULL,
	PRIMARY KEY (tenant, at, grade, unit, field)
) STRICT, WITHOUT ROWID;
CREATE TABLE usage_day (
	tenant BLOB NOT NULL, at INTEGER NOT NULL, grade TEXT NOT NULL, unit BLOB NOT NULL, field BLOB NOT NULL,
	charged INTEGER NOT NULL, given_back INTEGER NOT NULL, calls INTEGER NOT NULL,
	PRIMARY KEY (tenant, at, grade, unit, field)
) STRICT, WITHOUT ROWID;
CREATE TABLE usage_month (
	tenant BLOB NOT NULL, at INTEGER NOT NULL, grade TEXT NOT NULL, unit BLOB NOT NULL, field BLOB NOT NULL,
	charged INTEGER NOT NULL, given_back INTEGER NOT NULL, calls INTEGER NOT NULL,
	PRIMARY KEY (tenant, at, grade, unit, field)
) STRICT, WITHOUT ROWID;

-- What instances have decided, as each of them has counted it since it was started.
CREATE TABLE decision_minute (
	tenant       BLOB NOT NULL,
	minute       INTEGER NOT NULL,
	-- By what decisions are counted, and the name of one such thing: empty for all of the tenant.
	dimension    TEXT NOT NULL,
	name         BLOB NOT NULL,
	instance     BLOB NOT NULL,
	boot         BLOB NOT NULL,
	admitted     INTEGER NOT NULL,
	refused      INTEGER NOT NULL,
	would_refuse INTEGER NOT NULL,
	points       INTEGER NOT NULL,
	PRIMARY KEY (tenant, minute, dimension, name, instance, boot)
) STRICT, WITHOUT ROWID;
CREATE TABLE decision_hour (
	tenant BLOB NOT NULL, at INTEGER NOT NULL, dimension TEXT NOT NULL, name BLOB NOT NULL,
	admitted INTEGER NOT NULL, refused INTEGER NOT NULL, would_refuse INTEGER NOT NULL, points INTEGER NOT NULL,
	PRIMARY KEY (tenant, at, dimension, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE decision_day (
	tenant BLOB NOT NULL, at INTEGER NOT NULL, dimension TEXT NOT NULL, name BLOB NOT NULL,
	admitted INTEGER NOT NULL, refused INTEGER NOT NULL, would_refuse INTEGER NOT NULL, points INTEGER NOT NULL,
	PRIMARY KEY (tenant, at, dimension, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE decision_month (
	tenant BLOB NOT NULL, at INTEGER NOT NULL, dimension TEXT NOT NULL, name BLOB NOT NULL,
	admitted INTEGER NOT NULL, refused INTEGER NOT NULL, would_refuse INTEGER NOT NULL, points INTEGER NOT NULL,
	PRIMARY KEY (tenant, at, dimension, name)
) STRICT, WITHOUT ROWID;

-- How often a limit of an owner was used up to a share of it, in per cent.
CREATE TABLE reached_minute (
	tenant     BLOB NOT NULL,
	minute     INTEGER NOT NULL,
	level      TEXT NOT NULL,
	owner      BLOB NOT NULL,
	limit_name BLOB NOT NULL,
	threshold  INTEGER NOT NULL,
	instance   BLOB NOT NULL,
	boot       BLOB NOT NULL,
	times      INTEGER NOT NULL,
	PRIMARY KEY (tenant, minute, level, owner, limit_name, threshold, instance, boot)
) STRICT, WITHOUT ROWID;
CREATE TABLE reached_day (
	tenant BLOB NOT NULL, at INTEGER NOT NULL, level TEXT NOT NULL, owner BLOB NOT NULL, limit_name BLOB NOT NULL,
	threshold INTEGER NOT NULL, times INTEGER NOT NULL,
	PRIMARY KEY (tenant, at, level, owner, limit_name, threshold)
) STRICT, WITHOUT ROWID;

-- What has to be computed anew, because something below it has changed since that time.
CREATE TABLE usage_dirty (
	-- One of the tables of hours, days and months.
	series TEXT NOT NULL,
	tenant BLOB NOT NULL,
	at     INTEGER NOT NULL,
	since  INTEGER NOT NULL,
	PRIMARY KEY (series, tenant, at)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_dirty_since ON usage_dirty (series, since);

-- What is there. What was forgotten stays in the next level, which is not computed anew then.
CREATE TABLE usage_state (
	id            INTEGER PRIMARY KEY CHECK (id = 1),
	-- The days of which there are minutes: from one, and before another.
	minutes_from  INTEGER NOT NULL DEFAULT 0,
	minutes_until INTEGER NOT NULL DEFAULT 0 CHECK (minutes_until - minutes_from <= 1000),
	-- The first day of which there are hours, and the first month of which there are days.
	hours_from    INTEGER NOT NULL DEFAULT 0,
	days_from     INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO usage_state (id) VALUES (1);

-- Up to which minute everything was read, by each of the ways in which it is found.
CREATE TABLE usage_pass (
	pass   TEXT PRIMARY KEY,
	minute INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
