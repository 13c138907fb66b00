-- Writes what an instance has to say.
-- KEYS 1 its digest, 2 its refusals, 3 its records
-- ARGV 1 the digest, 2 its life in ms, 3 that of refusals and records, 4 further records, empty for none, 5 how many parts of records stay,
-- 6 whether the refusals below are all that there are; 7 how many ids follow that are gone, then these, then ids with refusals
-- Reply: how many refusals there are.
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if ARGV[6] == '1' then redis.call('DEL', KEYS[2]) end
local next = 8 + ARGV[7]
for i = 8, next - 1 do redis.call('HDEL', KEYS[2], ARGV[i]) end
for i = next, #ARGV, 2 do redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1]) end
redis.call('PEXPIRE', KEYS[2], ARGV[3])
if ARGV[4] ~= '' then
  redis.call('RPUSH', KEYS[3], ARGV[4])
  redis.call('LTRIM', KEYS[3], -ARGV[5], -1)
end
redis.call('PEXPIRE', KEYS[3], ARGV[3])
return redis.call('HLEN', KEYS[2])
