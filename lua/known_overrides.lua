-- known_overrides.lua: whether the caller knows the override records of the tenant. It stands after clock.lua
-- in each script that judges or shows limits by their rules.
--
-- The caller has worked the records that it knows into the rules and says which these are. If there are
-- others, or if one of them has expired, nothing is done, and the reply tells the records:
--   outcome 1 byte: 11, now in Unix ms 6, and the records as they are stored, see override.lua
-- A generation of eight bytes 255 stands for any: the caller was told records a moment ago, by an earlier try of the same
-- call, and they change faster than it can ask. What it does is done before their change, which began after it.
--
-- The last of the keys is that of the records. It is taken away, so that the scripts count theirs alone.
--
-- Takes: now, read, pack
-- Declares: expected, since, till, generation

local expected, since, till = read(KNOWN_FORMAT, ARGV[1], KNOWN_PLACE)
local generation = redis.call('GETRANGE', KEYS[#KEYS], '0', GENERATION_END)
if generation ~= expected and (generation ~= '' or expected ~= '\0\0\0\0\0\0\0\0') and expected ~= '\255\255\255\255\255\255\255\255' or now < since or now >= till then
  return pack(REPLY_FORMAT, OTHER_OVERRIDES, now) .. (redis.call('GET', KEYS[#KEYS]) or '')
end
KEYS[#KEYS] = nil
