-- peek.lua: reads the states of all owners and writes nothing.
--
-- KEYS, all under one hash tag:
--   KEYS[o]      state of owner o
--   and the key that known_overrides.lua takes away
-- ARGV:
--   ARGV[1]      numbers, see clock.lua: extra has no meaning; none for a limit
--   ARGV[1 + o]  rules of owner o, see state.lua
--
-- Reply, a string, big endian: outcome 1 byte (0 too late, 1 read, 10 other window, 11 other
-- overrides), now in Unix ms 6, and if read the states of the owners, see state.lua.
--
-- Expiry: none, since nothing is written.
--
-- Takes: now, pack, load, show
-- Declares: states

local states = {}
for o = 1, #KEYS do
  local owner = load(KEYS[o], ARGV[1 + o], 0)
  if not owner then
    return pack(REPLY_FORMAT, OTHER_WINDOW, now)
  end
  states[o] = show(owner)
end
return pack(REPLY_FORMAT, APPLIED, now) .. table.concat(states)
