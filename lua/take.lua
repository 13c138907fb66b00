-- take.lua: charges all owners or none, and claims an idempotency key, in one step. What it does for
-- all takes and the fast ones have in common stands in claim.lua and fast.lua, before it; the rest is here.
--
-- KEYS, all under one hash tag:
--   KEYS[o]      state of owner o, for o = 1 .. owners, those of a candidate policy after the live ones
--   KEYS[plain]  record of the idempotency key, if ARGV[2] is not empty
--   and the keys of count.lua, which are no owners, and the one that known_overrides.lua takes away
-- ARGV:
--   ARGV[1]      numbers, see clock.lua: extra is 1 if no owner has a soft limit, 2 if an override
--                record blocks the take, and 4 more for each owner of the candidate; the amount of
--                each limit in tokens
--   ARGV[2]      claim, or empty: attempt 16 bytes, fingerprint 16, lease in ms 6, life of the
--                record in ms 6, rules 1: 1 if an abandoned claim refuses, and 2 more if what is done without
--                an answer runs again, charged anew; a hash of the limits of the live owners 4
--   ARGV[2 + o]  rules of owner o, see state.lua
--   and what is counted, see count.lua
--
-- Record of a key, a string, big endian: version 1 byte, state 1 (1 in flight, 2 done without an
-- answer, 3 done with one, 4 free: charged, and released by a repeat), end of the lease in Unix ms 6,
-- end of the record in Unix ms 6, attempt 16, fingerprint 16; then the answer, or in flight: date of the take in Unix ms 6, 1 if it was a repeat and 0 if not, the hash of the limits 4, and of
-- each limit that was charged less than asked its place among those of all live owners, from 0, 1 byte, and in tokens
-- what it was charged 7.
--
-- Reply, a string, big endian: outcome 1 byte, now in Unix ms 6, how many limits were charged less than asked
-- 1 byte, and these as in the record; if there is a candidate its outcome 1 byte, 0 if it
-- was not judged, and its limits that were charged less in the same form; the states of the owners after the
-- charge, see state.lua, without those of a candidate that was not judged, and a tail:
--   0 too late       nothing was done; the reply ends after now
--   1 admitted
--   2 limited
--   3 never
--   4 replayed       the tail is the answer
--   5 in flight      the tail is the end of the lease in Unix ms 6
--   6 key reused
--   7 no answer      done without an answer, and the claim does not run again
--   8 repeat         admitted, charged before
--   9 again          the first verdict for the same attempt: the tail is the record from the date on
--   10 other window  nothing was done, because now is in another window of the calendar, or another hour, than the
--                    caller sent; the reply ends after now
--   11 other overrides  nothing was done, see known_overrides.lua
--   12 blocked       nothing was done; the reply ends after now
--   13 unknown       an attempt was abandoned, and the claim refuses to run after it
--
-- Expiry: a state as state.lua says, a record at the end that its charge gave it.
-- A refusal writes nothing, except that an entry that lies too far in the future, which a clock that was set back leaves
-- behind, is dated anew: a debt more than 5 s ahead, or a window that ends more than its length, or of the calendar
-- twice its length, and 5 s ahead.
--
-- Takes: now, pack, call, load, level, adopt, room, min, spend, save, show, owners, live, judged, outcome, short, trial,
--   trial_short, tail, candidates, holds, attempt, fingerprint, lease, life, limits, finish, states, counted, plain, hour, tally, read, points, requests
-- Declares: all, k, lives, charges, parts

local all, k, lives, charges = {}, 0, 0, {}
for o = 1, owners do
  local owner = load(KEYS[o], ARGV[2 + o], 1)
  if not owner then
    return pack(REPLY_FORMAT, OTHER_WINDOW, now)
  end
  all[o] = owner
  if o == live + 1 then
    k, lives = 0, k
  end
  for i = 1, #owner.limits do
    k = k + 1
    local limit, amount = owner.limits[i], judged and call[owner.first + i] or 0
    if amount > 0 then
      local never = amount > limit.capacity
      if limit.soft or not never and level(limit) <= limit.full - amount * limit.p then
        charges[k + lives] = amount
      elseif o > live then
        if limit.lenient then
          trial_short = trial_short .. pack(SHORT_FORMAT, k - 1, 0)
        else
          trial = (never or trial == NEVER) and NEVER or LIMITED
        end
      elseif limit.lenient then
        short = short .. pack(SHORT_FORMAT, k - 1, 0)
      else
        outcome = (never or outcome == NEVER) and NEVER or LIMITED
      end
    end
  end
end

local parts = {}
k = 0
for o = 1, owners do
  local owner = all[o]
  local write = judged and owner.redated
  for i = 1, #owner.limits do
    k = k + 1
    local limit, amount = owner.limits[i], charges[k]
    if amount and (o > live and trial or outcome) == ADMITTED then
      if limit.other and limit.units <= limit.full then
        adopt(limit)
      end
      -- What a soft limit charged above its capacity in other terms might be owed for years.
      local charged = limit.other and 0 or limit.soft and min(amount, room(limit)) or amount
      if charged > 0 then
        spend(limit, limit.debt + charged * limit.one)
      end
      if charged < amount and o > live then
        trial_short = trial_short .. pack(SHORT_FORMAT, k - 1 - lives, charged)
      elseif charged < amount then
        short = short .. pack(SHORT_FORMAT, k - 1, charged)
      end
      write = write or limit.changed
    end
  end
  if write then
    save(owner)
  end
  parts[o] = show(owner)
end
states = table.concat(parts)
until true

-- The end of all takes: it counts, and writes the claim.
if outcome ~= ADMITTED then
  short = ''
elseif counted > 0 then
  tally(counted, plain, 3 + owners, hour, now, points, requests, 0, 0, now, read, pack)
end
if holds and (outcome == ADMITTED or outcome == REPEAT) then
  finish = finish or now + life
  redis.call('SET', KEYS[plain], pack(HELD_FORMAT, RECORD_VERSION, RUNNING, now + lease, finish, attempt, fingerprint,
    now, outcome == REPEAT and 1 or 0, limits) .. short, 'PXAT', finish)
end
if candidates > 0 then
  if trial ~= ADMITTED then
    trial_short = ''
  end
  states = pack(TRIAL_FORMAT, trial, #trial_short / SHORT_SIZE) .. trial_short .. states
end
return pack(TAKE_FORMAT, outcome, now, #short / SHORT_SIZE) .. short .. states .. tail
