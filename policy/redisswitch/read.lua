-- Returns the switches.
-- KEYS 1 the switches
-- ARGV 1 the digest of what the caller has, 2 the most bytes that there may be
-- Reply: the time in ms, the digest of what is there, and what is there: nothing if the caller has it. A digest is empty where nothing
-- is, and a minus where it is too large.
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
if redis.call('STRLEN', KEYS[1]) > tonumber(ARGV[2]) then return {now, '-', ''} end
local there = redis.call('GET', KEYS[1])
if not there then return {now, '', ''} end
local digest = redis.sha1hex(there)
if digest == ARGV[1] then there = '' end
return {now, digest, there}
