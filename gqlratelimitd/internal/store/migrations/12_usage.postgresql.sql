-- What tenants have used, with a partition for the minutes of each day. Minutes, hours, days and months are counted since 1970, in UTC; names are any bytes. The numbers of minutes are absolute
-- and only grow: what is read again replaces them only if it is more. Hours, days and months are computed from the level below, never added to.
CREATE TABLE usage_minute (
	tenant     bytea NOT NULL,
	minute     bigint NOT NULL,
	-- How much it is to be believed: exact or local.
	grade      text NOT NULL,
	unit       bytea NOT NULL,
	-- The coordinate of a root field, empty for a unit as a whole.
	field      bytea NOT NULL,
	-- What tells a count from one that was lost or forgotten before it. Those of all generations are added up.
	generation bigint NOT NULL,
	charged    bigint NOT NULL,
	given_back bigint NOT NULL,
	calls      bigint NOT NULL,
	PRIMARY KEY (tenant, minute, grade, unit, field, generation)
) PARTITION BY RANGE (minute);
CREATE TABLE usage_hour (
	tenant bytea NOT NULL, at bigint NOT NULL, grade text NOT NULL, unit bytea NOT NULL, field bytea NOT NULL,
	charged bigint NOT NULL, given_back bigint NOT NULL, calls bigint NOT NULL,
	PRIMARY KEY (tenant, at, grade, unit, field)
);
CREATE TABLE usage_day (
	tenant bytea NOT NULL, at bigint NOT NULL, grade text NOT NULL, unit bytea NOT NULL, field bytea NOT NULL,
	charged bigint NOT NULL, given_back bigint NOT NULL, calls bigint NOT NULL,
	PRIMARY KEY (tenant, at, grade, unit, field)
);
CREATE TABLE usage_month (
	tenant bytea NOT NULL, at bigint NOT NULL, grade text NOT NULL, unit bytea NOT NULL, field bytea NOT NULL,
	charged bigint NOT NULL, given_back bigint NOT NULL, calls bigint NOT NULL,
	PRIMARY KEY (tenant, at, grade, unit, field)
);

-- What instances have decided, as each of them has counted it since it was started.
CREATE TABLE decision_minute (
	tenant       bytea NOT NULL,
	minute       bigint NOT NULL,
	-- By what decisions are counted, and the name of one such thing: empty for all of the tenant.
	dimension    text NOT NULL,
	name         bytea NOT NULL,
	instance     bytea NOT NULL,
	boot         bytea NOT NULL,
	admitted     bigint NOT NULL,
	refused      bigint NOT NULL,
	would_refuse bigint NOT NULL,
	points       bigint NOT NULL,
	PRIMARY KEY (tenant, minute, dimension, name, instance, boot)
) PARTITION BY RANGE (minute);
CREATE TABLE decision_hour (
	tenant bytea NOT NULL, at bigint NOT NULL, dimension text NOT NULL, name bytea NOT NULL,
	admitted bigint NOT NULL, refused bigint NOT NULL, would_refuse bigint NOT NULL, points bigint NOT NULL,
	PRIMARY KEY (tenant, at, dimension, name)
);
CREATE TABLE decision_day (
	tenant bytea NOT NULL, at bigint NOT NULL, dimension text NOT NULL, name bytea NOT NULL,
	admitted bigint NOT NULL, refused bigint NOT NULL, would_refuse bigint NOT NULL, points bigint NOT NULL,
	PRIMARY KEY (tenant, at, dimension, name)
);
CREATE TABLE decision_month (
	tenant bytea NOT NULL, at bigint NOT NULL, dimension text NOT NULL, name bytea NOT NULL,
	admitted bigint NOT NULL, refused bigint NOT NULL, would_refuse bigint NOT NULL, points bigint NOT NULL,
	PRIMARY KEY (tenant, at, dimension, name)
);

-- How often a limit of an owner was used up to a share of it, in per cent.
CREATE TABLE reached_minute (
	tenant     bytea NOT NULL,
	minute     bigint NOT NULL,
	level      text NOT NULL,
	owner      bytea NOT NULL,
	limit_name bytea NOT NULL,
	threshold  bigint NOT NULL,
	instance   bytea NOT NULL,
	boot       bytea NOT NULL,
	times      bigint NOT NULL,
	PRIMARY KEY (tenant, minute, level, owner, limit_name, threshold, instance, boot)
) PARTITION BY RANGE (minute);
CREATE TABLE reached_day (
	tenant bytea NOT NULL, at bigint NOT NULL, level text NOT NULL, owner bytea NOT NULL, limit_name bytea NOT NULL,
	threshold bigint NOT NULL, times bigint NOT NULL,
	PRIMARY KEY (tenant, at, level, owner, limit_name, threshold)
);

-- What has to be computed anew, because something below it has changed since that time.
CREATE TABLE usage_dirty (
	-- One of the tables of hours, days and months.
	series text NOT NULL,
	tenant bytea NOT NULL,
	at     bigint NOT NULL,
	since  bigint NOT NULL,
	PRIMARY KEY (series, tenant, at)
);
CREATE INDEX usage_dirty_since ON usage_dirty (series, since);

-- What is there. What was forgotten stays in the next level, which is not computed anew then.
CREATE TABLE usage_state (
	id            bigint PRIMARY KEY CHECK (id = 1),
	-- The days of which there are minutes: from one, and before another.
	minutes_from  bigint NOT NULL DEFAULT 0,
	minutes_until bigint NOT NULL DEFAULT 0 CHECK (minutes_until - minutes_from <= 1000),
	-- The first day of which there are hours, and the first month of which there are days.
	hours_from    bigint NOT NULL DEFAULT 0,
	days_from     bigint NOT NULL DEFAULT 0
);
INSERT INTO usage_state (id) VALUES (1);

-- Up to which minute everything was read, by each of the ways in which it is found.
CREATE TABLE usage_pass (
	pass   text PRIMARY KEY,
	minute bigint NOT NULL
);

-- Makes the partitions of the days that usage_state names, and drops those of days before. Who may call it need not own the tables. It waits for nobody
-- who reads for long: whoever asks for a partition meanwhile would wait too.
CREATE FUNCTION usage_days() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = {schema}, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
	kept usage_state;
	named text;
	day bigint;
	gone regclass;
BEGIN
	SELECT * INTO kept FROM usage_state WHERE id = 1;
	FOREACH named IN ARRAY ARRAY['usage_minute', 'decision_minute', 'reached_minute'] LOOP
		FOR day IN SELECT generate_series(kept.minutes_from, kept.minutes_until - 1) LOOP
			IF to_regclass(format('%I', named || '_' || day)) IS NULL THEN
				EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES FROM (%s) TO (%s)', named || '_' || day, named, day * 1440, (day + 1) * 1440);
			END IF;
		END LOOP;
		FOR gone IN
			SELECT c.oid::regclass FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
			WHERE i.inhparent = to_regclass(format('%I', named)) AND CAST(substr(c.relname, length(named) + 2) AS bigint) < kept.minutes_from
		LOOP
			EXECUTE format('DROP TABLE %s', gone);
		END LOOP;
	END LOOP;
END $$;
REVOKE ALL ON FUNCTION usage_days() FROM PUBLIC;
