-- take.lua: charges all owners or none, and claims an idempotency key, in one step.
--
-- KEYS, all under one hash tag:
--   KEYS[o]      state of owner o, for o = 1 .. owners
--   KEYS[#KEYS]  record of the idempotency key, if ARGV[2] is not empty
-- ARGV:
--   ARGV[1]      Unix ms after which the caller no longer waits and nothing is done, 0 = none
--   ARGV[2]      claim, or empty: attempt 16 bytes, fingerprint 16, lease in ms 6, life of the
--                record in ms 6, free repeats 1
--   ARGV[3]      amount of each limit of all owners in tokens, 7 bytes each
--   ARGV[3 + o]  rules of owner o, see state.lua
--
-- Record of a key, a string, big endian: version 1 byte, state 1 (1 in flight, 2 done without an
-- answer, 3 done with one, 4 free: charged, and released by a repeat), end of the lease in Unix ms 6,
-- end of the record in Unix ms 6, attempt 16, fingerprint 16, free repeats so far 1; then the answer, or in flight: date of the take in Unix
-- ms 6, 1 if it was a repeat and 0 if not, and for each limit a byte 1 if it was left uncharged and
-- 0 if not.
--
-- Reply, a string, big endian: outcome 1 byte, now in Unix ms 6, a date in Unix ms 6, the debt of
-- each limit before the charge 7 each, and a tail:
--   0 too late       nothing was done; the debts are missing
--   1 admitted
--   2 limited
--   3 never
--   4 replayed       the tail is the answer
--   5 in flight      the date is the end of the lease
--   6 key reused
--   7 no answer      done without an answer, and no free repeat is allowed
--   8 repeat         admitted, charged before
--   9 again          the first verdict for the same attempt: the date is that of the take, the tail
--                    its byte for each limit
--
-- Expiry: a state when it is full, a record at the end that its first charge gave it.
-- A refusal writes nothing, except that a state more than 5 s in the future, which a clock that was
-- set back leaves behind, is dated anew.

local LATE, ADMITTED, LIMITED, NEVER, REPLAYED = 0, 1, 2, 3, 4
local IN_FLIGHT, REUSED, NO_ANSWER, REPEAT, AGAIN = 5, 6, 7, 8, 9

local before = tonumber(ARGV[1])
if before > 0 and now > before then
  return pack('>BI6I6', LATE, now, 0)
end

local keyed = ARGV[2] ~= ''
local owners = keyed and #KEYS - 1 or #KEYS
local rules, debts, at, foreign, keep, redated = {}, {}, {}, {}, {}, {}
for o = 1, owners do
  rules[o], debts[o], at[o], foreign[o], keep[o], redated[o] = load(KEYS[o], ARGV[3 + o])
end

local outcome, date, tail = ADMITTED, 0, ''
local attempt, fingerprint, lease, life, free
local finish, repeats = nil, 0
if keyed then
  attempt, fingerprint, lease, life, free = read('>c16c16I6I6B', ARGV[2])
  local record = redis.call('GET', KEYS[#KEYS])
  if record then
    local version, state, leased, ends, holder, asked, used, rest = read('>BBI6I6c16c16B', record)
    if version ~= 1 then
      error('record of version ' .. version)
    end
    if ends > now then
      finish, repeats = ends, used
      if asked ~= fingerprint then
        outcome = REUSED
      elseif state == 3 then
        outcome, tail = REPLAYED, string.sub(record, rest)
      elseif state == 2 then
        if free == 0 then
          outcome = NO_ANSWER
        elseif used < free then
          outcome, repeats = REPEAT, used + 1
        end
      elseif state == 4 then
        outcome = REPEAT
      elseif holder == attempt then
        local repeated
        date, repeated, rest = read('>I6B', record, rest)
        outcome, tail = AGAIN, string.sub(record, rest)
        if repeated == 1 then
          outcome, date, tail, keyed = REPEAT, 0, '', false
        end
      elseif leased > now then
        outcome, date = IN_FLIGHT, leased
      else
        outcome = REPEAT
      end
    end
  end
end

-- Judge: charges[k] is what limit k is charged, in units of debt.
local all, charges, uncharged, k = {}, {}, {}, 0
local judged = outcome == ADMITTED
local amounts
if judged then
  amounts = {read('>' .. rep('I7', #ARGV[3] / 7), ARGV[3])}
end
for o = 1, owners do
  local owned, ruled = debts[o], rules[o]
  for i = 1, #owned do
    k = k + 1
    local debt = owned[i]
    all[k] = debt
    local amount = judged and amounts[k] or 0
    if amount > 0 then
      local p, capacity = ruled[5 * i - 3], ruled[5 * i - 1]
      local never = amount > capacity
      if not never and debt <= capacity * p - amount * p then
        charges[k] = amount * p
      elseif ruled[5 * i] == 1 then
        uncharged[k] = true
      elseif never then
        outcome = NEVER
      elseif outcome == ADMITTED then
        outcome = LIMITED
      end
    end
  end
end
local reply = pack('>BI6I6' .. rep('I7', k), outcome, now, date, unpack(all)) .. tail

if judged then
  k = 0
  for o = 1, owners do
    local owned, write = debts[o], redated[o]
    for i = 1, #owned do
      k = k + 1
      if outcome == ADMITTED and charges[k] then
        owned[i] = owned[i] + charges[k]
        write = true
      end
    end
    if write then
      save(KEYS[o], rules[o], owned, at[o], foreign[o], keep[o])
    end
  end
end

if keyed and (outcome == ADMITTED or outcome == REPEAT) then
  local flags = {}
  for i = 1, k do
    flags[i] = uncharged[i] and '\1' or '\0'
  end
  finish = finish or now + life
  local record = pack('>BBI6I6c16c16BI6B', 1, 1, now + lease, finish, attempt, fingerprint, repeats,
    now, outcome == REPEAT and 1 or 0)
  redis.call('SET', KEYS[#KEYS], record .. table.concat(flags), 'PXAT', finish)
end
return reply
