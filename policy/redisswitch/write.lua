-- Writes the switches if they are those that the caller has read, and says so to subscribers.
-- KEYS 1 the switches
-- ARGV 1 the digest of what was read, 2 the most bytes that there may be, 3 the switches, 4 for how many ms they stay, 5 the channel
-- Reply: 1, or 0 if others are there.
local digest = '-'
if redis.call('STRLEN', KEYS[1]) <= tonumber(ARGV[2]) then
  local there = redis.call('GET', KEYS[1])
  digest = there and redis.sha1hex(there) or ''
end
if digest ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
redis.call('PUBLISH', ARGV[5], '')
return 1
