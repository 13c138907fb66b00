-- peek.lua: reads the debts of all owners and writes nothing.
--
-- KEYS, all under one hash tag:
--   KEYS[o]      state of owner o
-- ARGV:
--   ARGV[1]      Unix ms after which the caller no longer waits, 0 = none
--   ARGV[1 + o]  rules of owner o, see state.lua
--
-- Reply, a string, big endian: outcome 1 byte (0 too late, 1 read), now in Unix ms 6, and if read the
-- debt of each limit 7 each.
--
-- Expiry: none, since nothing is written.

local before = tonumber(ARGV[1])
if before > 0 and now > before then
  return pack('>BI6', 0, now)
end

local all = {}
for o = 1, #KEYS do
  local _, debts = load(KEYS[o], ARGV[1 + o])
  for i = 1, #debts do
    all[#all + 1] = debts[i]
  end
end
return pack('>BI6' .. rep('I7', #all), 1, now, unpack(all))
