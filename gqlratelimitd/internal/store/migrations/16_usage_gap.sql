-- Times that nobody has collected, because the collector was away for longer than counts are kept elsewhere: in minutes since 1970. What was counted in them may be
-- lost, so that no line is ever removed.
CREATE TABLE usage_gap (
	first_minute {integer} PRIMARY KEY,
	until_minute {integer} NOT NULL CHECK (until_minute > first_minute)
){strict};
