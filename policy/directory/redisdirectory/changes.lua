-- Returns which tenants have changed.
-- KEYS 1 the head, 2 the records, 3 the changes
-- ARGV 1 origin and 2 revision since when, 3 how many fit, 4 the most bytes of a name
-- Reply: nothing if nothing was ever written; origin, revision through which it goes, 1 for a gap, 1 if more follow, and of each
-- change tenant and revision.
local head = redis.call('HMGET', KEYS[1], 'origin', 'revision', 'floor')
if not head[1] then return {} end
local since, newest = tonumber(ARGV[2]), tonumber(head[2])
if head[1] ~= ARGV[1] or since > newest or since < tonumber(head[3] or '0') then return {head[1], head[2], '1', '0'} end
local most = tonumber(ARGV[3])
local found = redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. ARGV[2], '+inf', 'WITHSCORES', 'LIMIT', 0, most + 1)
local reply = {head[1], head[2], '0', '0'}
if #found > 2 * most then
  reply[2], reply[4] = found[2 * most], '1'
end
for i = 1, math.min(#found, 2 * most), 2 do
  -- A name that is too long was written by somebody else.
  reply[#reply + 1] = string.sub(found[i], 1, tonumber(ARGV[4]))
  reply[#reply + 1] = found[i + 1]
end
return reply
