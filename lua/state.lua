-- state.lua: the stored state of an owner, and the arithmetic on it. It stands before each script
-- but renew. Package bucket has the same arithmetic in Go.
--
-- State of an owner, a string, big endian. Of up to four token buckets that were charged by one policy,
-- version 3, 59 bytes:
--   version   1 byte: 3
--   last      6 bytes, Unix ms, the date of the debts
--   ids       4 times id 2 bytes, a hash of unit and name, p 4 and r 2: debt is in units of 1/p token, of
--     which r decay each ms
--   debts     4 times 5 bytes; unused places are zero
-- Of anything else, version 4:
--   version   1 byte: 4
--   and entries, at most one of each id, each with a tag of 1 byte:
--   1 token bucket           id 2, date of the debt 6, p 5, r 7, debt 7
--   2 fixed window           id 2, end in Unix ms 6, length in ms 5, used 7
--   3 sliding window         the same, and used in the window before 7
--   4 hour, 5 day, 6 month, 7 year   as 2: windows of the calendar
-- The key expires when every entry counts nothing any more: an absent key is a full bucket.
--
-- The terms of an entry are its tag, p and r, and length: how it comes back. They are those of the policy
-- that charged it last, which need not be that of the caller. A limit reads an entry of other terms as what
-- that counts now, in tokens rounded up; see count. A take that charges the limit makes its terms those
-- of the entry, unless the entry counts more than the capacity of the limit: then it keeps them, and so it does
-- in a settlement and a grant. What a call does not charge it leaves as it is. So nothing that is owed ever
-- comes back faster than a policy says that has charged it, and nobody owes it for longer.
--
-- Rules of an owner, an argument. The columns have one place for each limit, and unused ones up to
-- four if the owner is a usual one: see quick.lua.
--   ids       id 2 bytes, p 4 and r 2 each, big endian; p and r are 0 in an owner that is not a usual one
--   numbers   three little endian doubles each: p, r, full. Debt is in units of 1/p token, of which r
--             decay each ms, and full is the debt of an empty bucket. For a window of fixed length r is
--             the length in ms; p is that too if the window slides, and otherwise 1.
--   flags     1 byte each: 1 lenient, refuses nothing and is left uncharged; 2 soft, refuses nothing
--             and is charged; and 4 times the tag of its entries
--   n         1 byte, how many limits there are, and 128 more if the owner is a usual one
--
-- Numbers of an owner in ARGV[1]: for each place of its columns as many as the script says, then of
-- each limit that has a window of the calendar its start and end in Unix ms, start included.
--
-- States of owners in a reply: version 3, of a usual owner, or version 4, and then for each limit its
-- entry, or a byte of 0 if it has none.

local EXACT = 2 ^ 53
local AHEAD = 5000
local TOKEN, SLIDING, HOUR = 1, 3, 4
-- What the debts of version 3 are below.
local FITS = 2 ^ 40
local floor, fmod, max, min, byte, sub = math.floor, math.fmod, math.max, math.min, string.byte, string.sub

-- a / b rounded up, for integers up to 2^53.
local function ceil_div(a, b)
  local rest = fmod(a, b)
  if rest > 0 then
    return (a - rest) / b + 1
  end
  return a / b
end

-- A debt in units of 1/from token, in units of 1/p, rounded up, at most 2^53.
local function convert(debt, from, p)
  if from == p then
    return debt
  end
  local rest = fmod(debt, from)
  debt = (debt - rest) / from * p
  if rest > 0 then
    debt = debt + (from * p >= EXACT and p or ceil_div(rest * p, from))
  end
  return min(debt, EXACT)
end

-- The debt after a time that may be negative. Above 2^53 the product is not exact, but then it is more
-- than any debt.
local function decay(debt, r, elapsed)
  if elapsed <= 0 then
    return debt
  end
  return max(0, debt - r * elapsed)
end

-- Numbers of ARGV[1], and the place of the last one that was used.
local call = {read(rep('<d', #ARGV[1] / 8), ARGV[1])}
local used_numbers = 5

-- When an entry counts nothing any more.
local function gone(e)
  if e.tag == TOKEN then
    return e.date + ceil_div(e.debt, e.r)
  elseif e.tag == SLIDING and e.debt > 0 then
    return e.finish + e.length
  end
  return e.finish
end

-- Moves a window to that of the time.
local function roll(e)
  if e.finish > now then
    return
  elseif e.tag == SLIDING and e.debt > 0 and e.finish + e.length > now then
    e.previous, e.debt, e.finish = e.debt, 0, e.finish + e.length
  else
    e.previous, e.debt, e.finish = 0, 0, 0
  end
end

-- The time of a sliding window that the one before it still counts for.
local function overlap(e)
  return e.tag == SLIDING and max(0, min(e.finish - now, e.length)) or 0
end

-- What an entry of other terms, which is not gone, counts of a limit: its tokens, rounded up, and units of 1/p of
-- the limit, at most 2^53. Of a token bucket that refills faster than the limit, what is above the capacity of the
-- limit comes back as fast as it did, and the rest as fast as the limit does.
local function count(limit, e)
  if e.tag ~= TOKEN or limit.tag ~= TOKEN then
    local tokens = 0
    if e.tag == TOKEN then
      tokens = ceil_div(decay(e.debt, e.r, now - e.date), e.p)
    elseif e.tag == SLIDING then
      tokens = e.debt + ceil_div(e.previous * overlap(e), e.length)
    else
      tokens = e.debt
    end
    return tokens, min(tokens * limit.p, EXACT)
  end
  local elapsed, above, units = max(0, now - e.date), e.debt - limit.capacity * e.p, nil
  if limit.r / limit.p >= e.r / e.p or above <= 0 then
    units = decay(convert(e.debt, e.p, limit.p), limit.r, elapsed)
  else
    local wait = ceil_div(above, e.r)
    if elapsed < wait then
      units = convert(e.debt - e.r * elapsed, e.p, limit.p)
    else
      units = decay(limit.full, limit.r, elapsed - wait)
    end
  end
  return ceil_div(units, limit.p), units
end

-- An entry as it is stored.
local function packed(e)
  if e.tag == TOKEN then
    return pack('>BI2I6I5I7I7', e.tag, e.id, e.date, e.p, e.r, e.debt)
  elseif e.tag == SLIDING then
    return pack('>BI2I6I5I7I7', e.tag, e.id, e.finish, e.length, e.debt, e.previous)
  end
  return pack('>BI2I6I5I7', e.tag, e.id, e.finish, e.length, e.debt)
end

-- Sets a limit of an owner from an entry.
local function adopt(limit, e)
  limit.stored = e
  limit.at = e.tag == TOKEN and max(now, e.date) or now
  if e.tag ~= limit.tag or e.tag == TOKEN and (e.p ~= limit.p or e.r ~= limit.r)
    or e.tag > TOKEN and e.tag < HOUR and e.length ~= limit.length
    or e.tag >= HOUR and e.finish ~= limit.to then
    local rolled = {
      tag = e.tag, id = e.id, date = e.date, p = e.p, r = e.r, debt = e.debt, previous = e.previous,
      finish = e.finish, length = e.length, one = e.tag == TOKEN and e.p or 1,
    }
    if e.tag > TOKEN then
      roll(rolled)
    end
    limit.other = rolled
    limit.tokens, limit.units = count(limit, rolled)
    if e.tag == TOKEN then
      rolled.debt = decay(e.debt, e.r, now - e.date)
    end
  elseif e.tag == TOKEN then
    limit.debt = decay(e.debt, e.r, now - e.date)
  else
    limit.debt, limit.previous, limit.finish = e.debt, e.previous, e.finish
    roll(limit)
  end
end

-- The limit of an id, or nil. The order is usually that of the last writer: i is tried first.
local function find(owner, id, i)
  local limits = owner.limits
  if limits[i] and limits[i].id == id then
    return limits[i]
  end
  for j = 1, #limits do
    if limits[j].id == id then
      return limits[j]
    end
  end
end

-- Reads an entry of version 4, and returns it with the place after it.
local function entry(state, at)
  local e = {tag = byte(state, at), previous = 0, from = at}
  if e.tag == TOKEN then
    e.id, e.date, e.p, e.r, e.debt, at = read('>I2I6I5I7I7', state, at + 1)
  elseif e.tag == SLIDING then
    e.id, e.finish, e.length, e.debt, e.previous, at = read('>I2I6I5I7I7', state, at + 1)
  elseif e.tag > 0 and e.tag <= 7 then
    e.id, e.finish, e.length, e.debt, at = read('>I2I6I5I7', state, at + 1)
  else
    error('entry of tag ' .. e.tag)
  end
  e.raw = sub(state, e.from, at - 1)
  return e, at
end

-- Dates an entry anew that lies so far in the future that the clock must have been set back: otherwise it
-- would not come back until the clock has caught up.
local function redate(owner, e)
  if e.tag == TOKEN and e.date - now > AHEAD then
    e.date = now
  elseif e.tag > TOKEN and e.finish - now > (e.tag < HOUR and e.length or 2 * e.length) + AHEAD then
    e.finish = now + e.length
  else
    return
  end
  e.raw, owner.redated = nil, true
end

-- Reads the entries of a state, and keeps those of limits that the caller does not know, packed, and when the
-- last of them counts nothing any more.
local function entries(owner, state)
  local usual = byte(state) == 3
  local last, foreign, at, i = usual and read('>I6', state, 2), {}, 2, 0
  while i < 4 and usual or not usual and at <= #state do
    local e
    i = i + 1
    if usual then
      local id, p, r = read('>I2I4I2', state, 8 * i)
      e = {tag = TOKEN, id = id, date = last, p = p, r = r, debt = (read('>I5', state, 35 + 5 * i)), previous = 0}
    else
      e, at = entry(state, at)
    end
    -- An unused place of a usual owner owes nothing.
    if not usual or e.debt > 0 then
      if (e.length or e.p) == 0 or e.r == 0 then
        error('entry without a length or a rate')
      end
      redate(owner, e)
      local ends = gone(e)
      if ends > now then
        local limit = find(owner, e.id, i)
        if limit then
          limit.ends = ends
          adopt(limit, e)
        else
          foreign[#foreign + 1] = e.raw or packed(e)
          owner.keep = max(owner.keep, ends)
        end
      end
    end
  end
  owner.foreign = table.concat(foreign)
end

-- Reads the state of an owner as it is now. values is how many numbers a limit has in ARGV[1]. It
-- returns nil if now is not in a window of the calendar that the caller sent.
--   key, rules
--   usual              whether its limits fit version 3
--   first              the place before its first number in ARGV[1]
--   redated            whether an entry was dated anew, so that even a refusal must write it
--   foreign, keep      foreign entries, and when the last of them counts nothing any more
--   limits             of each limit:
--     id, p, r, full, capacity, tag, lenient, soft   as in its rules
--     one              in what its debt is counted: units of 1/p token, or of a window tokens
--     from, to         the window of its calendar
--     length           how long its windows are
--     debt             of a token bucket its debt, of a window what is used
--     previous, finish of a window: used in the one before, and its end, or 0 if it is not open
--     stored, ends     its entry as it was read, if there is one, and when that counts nothing any more
--     at               the date of a debt that is written: now, or later if that of the entry is
--     other            the entry as it is now if it is of other terms, of which the limit counts tokens and units
--     changed          whether the call has changed it
local function load(key, rules, values)
  local width = (#rules - 1) / 33
  local n, usual = byte(rules, -1), false
  if n >= 128 then
    n, usual = n - 128, true
  end
  local limits = {}
  local owner = {
    key = key, rules = rules, usual = usual, limits = limits, first = used_numbers,
    redated = false, foreign = '', keep = 0,
  }
  used_numbers = used_numbers + width * values
  for i = 1, n do
    local p, r, full = read('<ddd', rules, 8 * width + 24 * i - 23)
    local flag = byte(rules, 32 * width + i)
    local tag = floor(flag / 4)
    local from, to, length
    if tag >= HOUR then
      from, to = call[used_numbers + 1], call[used_numbers + 2]
      used_numbers = used_numbers + 2
      if now < from or now >= to then
        return nil
      end
      length = to - from
    elseif tag > TOKEN then
      length = r
    end
    limits[i] = {
      id = read('>I2', rules, 8 * i - 7), p = p, r = r, full = full, capacity = full / p,
      tag = tag, lenient = flag % 2 == 1, soft = flag % 4 > 1, one = tag == TOKEN and p or 1,
      from = from, to = to, length = length,
      debt = 0, previous = 0, finish = 0, at = now,
    }
  end
  local state = redis.call('GET', key)
  if state then
    local version = byte(state)
    if version ~= 4 and (version ~= 3 or #state ~= 59) then
      error('state of version ' .. version)
    end
    entries(owner, state)
  end
  return owner
end

-- What counts as spent of a limit, in units of 1/p token.
local function level(limit)
  if limit.other then
    return limit.units
  elseif limit.tag == SLIDING then
    return limit.debt * limit.p + limit.previous * overlap(limit)
  end
  return limit.debt
end

-- Sets what a limit owes or has used in its own terms, which opens a window or closes it.
local function spend(limit, debt)
  limit.debt, limit.changed = debt, true
  if limit.tag > TOKEN then
    if debt + limit.previous == 0 then
      limit.finish = 0
    elseif limit.finish == 0 then
      limit.finish = limit.to or now + limit.length
    end
  end
end

-- Makes the terms of a limit those of its entry.
local function convert_entry(limit)
  local other = limit.other
  limit.other = nil
  if limit.tag == TOKEN then
    limit.debt = limit.units
  else
    limit.debt, limit.previous, limit.finish = limit.tokens, 0, limit.to or now + limit.length
    if limit.tag >= HOUR and other.tag == limit.tag and other.finish > limit.finish then
      -- A window of the same kind that ends later: of another zone, or of a clock that was set back.
      limit.finish, limit.length = other.finish, other.length
    end
  end
end

-- The entry of a limit in its own terms, as it is now: the limit itself if these are those of the limit.
local function present(limit)
  return limit.other or limit
end

-- Sets the debt of the entry of a limit in the terms of the entry.
local function restate(limit, debt)
  if limit.other then
    limit.other.debt, limit.changed = debt, true
  else
    spend(limit, debt)
  end
end

-- Charges a limit tokens that it cannot refuse, at most down to twice its capacity and never more than can be
-- counted, and returns how many that were.
local function overdraw(limit, tokens)
  local e, room = limit.other, 0
  if e then
    room = e.tag == SLIDING and floor((EXACT - 1) / e.length) - e.debt - e.previous
      or floor((EXACT - 1 - e.debt) / e.one)
    room = min(room, 2 * limit.capacity - limit.tokens)
  else
    e, room = limit, floor((2 * limit.capacity * limit.one - limit.debt) / limit.one)
  end
  tokens = max(0, min(tokens, room))
  if tokens > 0 then
    restate(limit, e.debt + tokens * e.one)
  end
  return tokens
end

-- The entry of a limit for the state of its owner, and when that counts nothing any more. It returns nil if it
-- counts nothing now.
local function kept(limit)
  local e = limit.stored
  if not limit.changed then
    if e then
      return e.raw or packed(e), limit.ends
    end
    return nil
  end
  e = limit.other or limit
  if e.debt + e.previous == 0 then
    return nil
  end
  e.date = limit.at
  return packed(e), gone(e)
end

-- Whether the limits of an owner fit version 3.
local function fits(owner)
  if not owner.usual then
    return false
  end
  for i = 1, #owner.limits do
    local limit = owner.limits[i]
    if limit.other or limit.debt >= FITS then
      return false
    end
  end
  return true
end

-- The limits of an owner in version 3, and when the last of them owes nothing any more.
local function usually(owner)
  local date, debts, expiry = now, {0, 0, 0, 0}, 0
  for i = 1, #owner.limits do
    local limit = owner.limits[i]
    if limit.debt > 0 then
      debts[i], date = limit.debt, max(date, limit.at)
    end
  end
  for i = 1, #owner.limits do
    if debts[i] > 0 then
      expiry = max(expiry, date + ceil_div(debts[i], owner.limits[i].r))
    end
  end
  return pack('>BI6c32I5I5I5I5', 3, date, owner.rules, debts[1], debts[2], debts[3], debts[4]), expiry
end

-- The state of an owner for a reply.
local function show(owner)
  if fits(owner) then
    return (usually(owner))
  end
  local parts = {'\4'}
  for i = 1, #owner.limits do
    parts[i + 1] = kept(owner.limits[i]) or '\0'
  end
  return table.concat(parts)
end

-- Writes the state of an owner, or removes it when it means the same as none.
local function save(owner)
  local state, expiry
  if owner.foreign == '' and fits(owner) then
    state, expiry = usually(owner)
  else
    local parts = {'\4'}
    expiry = owner.keep
    for i = 1, #owner.limits do
      local part, ends = kept(owner.limits[i])
      if part then
        parts[#parts + 1] = part
        expiry = max(expiry, ends)
      end
    end
    state = table.concat(parts) .. owner.foreign
  end
  if expiry <= now then
    redis.call('DEL', owner.key)
  else
    redis.call('SET', owner.key, state, 'PXAT', expiry)
  end
end
