-- What is read over all tenants: sums of days and months, and who was near a limit.
CREATE INDEX usage_day_at ON usage_day (at, tenant, grade, unit) WHERE length(field) = 0;
CREATE INDEX usage_month_at ON usage_month (at, tenant, grade, unit) WHERE length(field) = 0;
CREATE INDEX decision_day_at ON decision_day (at, tenant) WHERE dimension = 'tenant';
CREATE INDEX decision_month_at ON decision_month (at, tenant) WHERE dimension = 'tenant';
CREATE INDEX reached_day_at ON reached_day (level, at, tenant, owner, limit_name, threshold, times);
-- The first minute that a pass has come to: before it nobody has collected anything.
ALTER TABLE usage_pass ADD COLUMN began {integer} NOT NULL DEFAULT 0;
