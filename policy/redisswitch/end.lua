-- Ends a switch, and says so to subscribers.
-- KEYS 1 the switches
-- ARGV 1 the scope, 2 a stamp, 3 the channel, 4 for how many ms the stamp stays
-- Reply: 1 if there was one, else 0.
local was = redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('HSET', KEYS[1], 'stamp', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('PUBLISH', ARGV[3], ARGV[2])
return was
