-- Writes what a run tells of its decisions in a minute. A write that comes after a later one changes nothing.
-- KEYS 1 the hash
-- ARGV 1 its life in ms, 2 the number of the write, 3 the name of the instance, then fields and values
local last = redis.call('HGET', KEYS[1], '#')
if last and tonumber(string.match(last, '^%d+')) >= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], '#', ARGV[2] .. ':' .. ARGV[3], unpack(ARGV, 4))
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
