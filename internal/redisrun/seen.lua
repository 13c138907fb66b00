-- Notes that a run of an instance is there, and forgets those that are gone for long.
-- KEYS 1 when each was seen
-- ARGV 1 the run, 2 after how many ms it is forgotten, 3 how many there may be
-- Reply: the time in ms, or 0 if there are too many.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return 0 end
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return now
