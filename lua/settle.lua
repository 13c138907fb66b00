-- settle.lua: corrects a charge and ends a claim, once.
--
-- KEYS, all under one hash tag:
--   KEYS[o]      state of owner o, for o = 1 .. #KEYS - 1
--   KEYS[#KEYS]  record of the idempotency key if ARGV[3] is not empty, else marker of the receipt
-- ARGV:
--   ARGV[1]      Unix ms after which the caller no longer waits and nothing is done, 0 = none
--   ARGV[2]      date of the take in Unix ms
--   ARGV[3]      end of the claim, or empty: attempt 16 bytes, new state 1 (0 released: the
--                record is removed, or free if it is that of a repeat; 2 done without an answer, 3 done
--                with one)
--   ARGV[4]      answer
--   ARGV[5]      for each limit of all owners, in tokens: what it was charged 7 bytes, what it is
--                worth 7
--   ARGV[5 + o]  rules of owner o, see state.lua
--
-- Reply, a string, big endian: outcome 1 byte (0 too late, 1 applied, 2 not applied: settled before,
-- too old, or not the holder of the claim), now in Unix ms 6, and if applied the debt of each limit
-- before 7 and after 7.
--
-- Expiry: a state when it is full, a marker after 60 s, a record at the end that it had.

local LIFE = 60000

local before, taken = tonumber(ARGV[1]), tonumber(ARGV[2])
if before > 0 and now > before then
  return pack('>BI6', 0, now)
end

-- Everything is read before anything is written: a state or a record that cannot be read ends the
-- script, and its error says that nothing was done.
local rules, debts, at, foreign, keep = {}, {}, {}, {}, {}
for o = 1, #KEYS - 1 do
  rules[o], debts[o], at[o], foreign[o], keep[o] = load(KEYS[o], ARGV[5 + o])
end

if ARGV[3] ~= '' then
  local attempt, final = read('>c16B', ARGV[3])
  local record = redis.call('GET', KEYS[#KEYS])
  if not record then
    return pack('>BI6', 2, now)
  end
  local version, state, leased, finish, holder, fingerprint, repeats, rest =
    read('>BBI6I6c16c16B', record)
  if version ~= 1 then
    error('record of version ' .. version)
  end
  if state ~= 1 or holder ~= attempt or finish <= now then
    return pack('>BI6', 2, now)
  end
  local _, repeated = read('>I6B', record, rest)
  if final == 0 and repeated == 0 then
    redis.call('DEL', KEYS[#KEYS])
  elseif final == 0 then
    -- The charge of an earlier attempt, and what that did, must not be forgotten with the repeat.
    local header = pack('>BBI6I6c16c16B', 1, 4, now, finish, holder, fingerprint, repeats)
    redis.call('SET', KEYS[#KEYS], header, 'PXAT', finish)
  else
    local header = pack('>BBI6I6c16c16B', 1, final, leased, finish, holder, fingerprint, repeats)
    redis.call('SET', KEYS[#KEYS], header .. ARGV[4], 'PXAT', finish)
  end
elseif now - taken >= LIFE or not redis.call('SET', KEYS[#KEYS], '', 'NX', 'PX', LIFE) then
  return pack('>BI6', 2, now)
end

local changes = {read('>' .. rep('I7', #ARGV[5] / 7), ARGV[5])}
local all, k = {}, 0
for o = 1, #KEYS - 1 do
  local owned, ruled = debts[o], rules[o]
  local write = false
  for i = 1, #owned do
    local charged, actual = changes[k + 1], changes[k + 2]
    local p, r, capacity = ruled[5 * i - 3], ruled[5 * i - 2], ruled[5 * i - 1]
    local debt = owned[i]
    all[k + 1] = debt
    if actual < charged then
      -- What the refill has repaid since the take was never lent.
      local owed = decay(charged * p, r, now - taken)
      debt = debt - math.min((charged - actual) * p, owed, debt)
    elseif actual > charged then
      debt = math.min(debt + math.min(actual - charged, 2 * capacity) * p, 2 * capacity * p)
    end
    all[k + 2] = debt
    k = k + 2
    if debt ~= owned[i] then
      owned[i] = debt
      write = true
    end
  end
  if write then
    save(KEYS[o], ruled, owned, at[o], foreign[o], keep[o])
  end
end
return pack('>BI6' .. rep('I7', k), 1, now, unpack(all))
