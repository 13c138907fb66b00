-- Adds events to the stream of a topic, all or none.
--
-- KEYS[1]  the stream
-- ARGV     how many entries it keeps, for how many ms, and of each event: id, source, type, subject, time, sequence, data
--
-- Redis checks whether it has memory before the first write of a script, so that none fails after it.
local stream, entries, age = KEYS[1], ARGV[1], tonumber(ARGV[2])
local time = redis.call('TIME')
for i = 3, #ARGV, 7 do
	redis.call('XADD', stream, 'MAXLEN', '~', entries, '*', 'specversion', '1.0', 'id', ARGV[i], 'source', ARGV[i + 1], 'type', ARGV[i + 2],
		'subject', ARGV[i + 3], 'time', ARGV[i + 4], 'sequence', ARGV[i + 5], 'data', ARGV[i + 6])
end
redis.call('XTRIM', stream, 'MINID', '~', string.format('%.0f', math.max(0, time[1] * 1000 + math.floor(time[2] / 1000) - age)))
redis.call('PEXPIRE', stream, age)
return (#ARGV - 2) / 7
