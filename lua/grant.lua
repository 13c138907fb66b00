-- grant.lua: gives budget back, up to the capacity of each limit.
--
-- KEYS, all under one hash tag:
--   KEYS[o]      state of owner o
-- ARGV:
--   ARGV[1]      Unix ms after which the caller no longer waits and nothing is done, 0 = none
--   ARGV[2]      amount for each limit of all owners in tokens, 7 bytes each
--   ARGV[2 + o]  rules of owner o, see state.lua
--
-- Reply, a string, big endian: outcome 1 byte (0 too late, 1 granted), now in Unix ms 6, and if
-- granted the debt of each limit before 7 and after 7.
--
-- Expiry: a state when it is full.

local before = tonumber(ARGV[1])
if before > 0 and now > before then
  return pack('>BI6', 0, now)
end

-- Everything is read before anything is written: a state that cannot be read ends the script, and its
-- error says that nothing was done.
local rules, debts, at, foreign, keep = {}, {}, {}, {}, {}
for o = 1, #KEYS do
  rules[o], debts[o], at[o], foreign[o], keep[o] = load(KEYS[o], ARGV[2 + o])
end

local amounts = {read('>' .. rep('I7', #ARGV[2] / 7), ARGV[2])}
local all, k = {}, 0
for o = 1, #KEYS do
  local owned, ruled = debts[o], rules[o]
  local write = false
  for i = 1, #owned do
    k = k + 1
    local p, capacity = ruled[5 * i - 3], ruled[5 * i - 1]
    local given = math.min(math.min(amounts[k], 2 * capacity) * p, owned[i])
    all[2 * k - 1] = owned[i]
    owned[i] = owned[i] - given
    all[2 * k] = owned[i]
    write = write or given > 0
  end
  if write then
    save(KEYS[o], ruled, owned, at[o], foreign[o], keep[o])
  end
end
return pack('>BI6' .. rep('I7', 2 * k), 1, now, unpack(all))
