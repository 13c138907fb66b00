-- usage.lua: reads what was counted, or forgets it if it is still what was read.
--
-- KEYS, all under one hash tag:
--   KEYS[i]      a count, see count.lua
-- ARGV:
--   ARGV[1]      numbers, see clock.lua: extra is 1 to forget, or 0
--   ARGV[1 + i]  what was read of count i, to forget it
--
-- Reply, a string, big endian: outcome 1 byte (0 too late, 1 done, 2 something else is counted by now and nothing was
-- done), now in Unix ms 6, and to read of each count its length 4 and its value, which is empty if there is none.
--
-- Expiry: none, since nothing is written.
--
-- Takes: now, extra, pack
-- Declares: values

local values = {}
for i = 1, #KEYS do
  local value = redis.call('GET', KEYS[i]) or ''
  if extra == 1 and value ~= ARGV[1 + i] then
    return pack(REPLY_FORMAT, NOT_APPLIED, now)
  end
  values[i] = pack(SIZE_FORMAT, #value) .. value
end
if extra == 0 then
  return pack(REPLY_FORMAT, APPLIED, now) .. table.concat(values)
end
for i = 1, #KEYS do
  redis.call('DEL', KEYS[i])
end
return pack(REPLY_FORMAT, APPLIED, now)
