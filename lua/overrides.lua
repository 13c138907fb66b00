-- overrides.lua: whether the caller knows the override records of the tenant. It stands after clock.lua
-- in each script that judges or shows limits by their rules.
--
-- The caller has worked the records that it knows into the rules and says which these are. If there are
-- others, or if one of them has expired, nothing is done, and the reply tells the records:
--   outcome 1 byte: 11, now in Unix ms 6, and the records as they are stored, see override.lua
--
-- The last of the keys is that of the records. It is taken away, so that the scripts count theirs alone.

local known, since, till = read('<c8dd', ARGV[1], 17)
local generation = redis.call('GETRANGE', KEYS[#KEYS], 0, 7)
if generation ~= known and (generation ~= '' or known ~= '\0\0\0\0\0\0\0\0') or now < since or now >= till then
  return pack('>BI6', 11, now) .. (redis.call('GET', KEYS[#KEYS]) or '')
end
KEYS[#KEYS] = nil
