-- adjust.lua: gives budget back, until nothing is spent, under whichever policy that was. Who gives nothing back reads the
-- states, and writes nothing.
--
-- KEYS, all under one hash tag:
--   KEYS[o]      state of owner o
--   and the key that known_overrides.lua takes away
-- ARGV:
--   ARGV[1]      numbers, see clock.lua: extra has no meaning; the amount for each limit in tokens
--   ARGV[1 + o]  rules of owner o, see state.lua
--
-- Reply, a string, big endian: outcome 1 byte (0 too late, 1 done, 10 other window, 11 other
-- overrides), now in Unix ms 6, and if done the states of the owners before, and then after, see state.lua.
--
-- Expiry: a state as state.lua says.
--
-- Takes: now, pack, call, load, level, min, floor, overlap, restate, save, show
-- Declares: all, earlier, later

-- Everything is read before anything is written: a state that cannot be read ends the script, and its
-- error says that nothing was done.
local all = {}
for o = 1, #KEYS do
  all[o] = load(KEYS[o], ARGV[1 + o], 1)
  if not all[o] then
    return pack(REPLY_FORMAT, OTHER_WINDOW, now)
  end
end

local earlier, later = {}, {}
for o = 1, #KEYS do
  local owner = all[o]
  local write = false
  earlier[o] = show(owner)
  for i = 1, #owner.limits do
    local limit, amount = owner.limits[i], call[owner.first + i]
    if limit.other and limit.tag == TOKEN and limit.other.tag == TOKEN then
      -- What does not count as spent here is given back to nobody else.
      amount = min(amount, limit.tokens)
    end
    if amount > 0 and level(limit) > 0 then
      local e = limit.other or limit
      -- Where there is a window before, units are tokens.
      local given, covered = min(amount * e.one, e.debt), overlap(e)
      local rest = min(amount - given, e.previous)
      if rest > 0 and covered > 0 then
        e.previous = e.previous - min(e.previous, floor(rest * e.length / covered))
      end
      restate(limit, e.debt - given)
    end
    write = write or limit.changed
  end
  if write then
    save(owner)
  end
  later[o] = show(owner)
end
return pack(REPLY_FORMAT, APPLIED, now) .. table.concat(earlier) .. table.concat(later)
