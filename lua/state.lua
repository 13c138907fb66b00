-- state.lua: the stored state of an owner, and the arithmetic on it. It stands before each script
-- but renew. Package bucket has the same arithmetic in Go.
--
-- State of an owner, a string, big endian. Of up to four token buckets, version 1, 59 bytes:
--   version   1 byte: 1
--   last      6 bytes, Unix ms, the date of the debts
--   ids       4 times id 2 bytes, a hash of unit and name, and p 4: debt is in units of 1/p token
--   debts     4 times 7 bytes; unused places are zero
-- Of anything else, version 2:
--   version   1 byte: 2
--   last      6 bytes, Unix ms, the date of the debts
--   and entries, each with a tag of 1 byte:
--   1 token bucket   id 2, p 5, debt 7
--   2 window         id 2, used 7, used in the window before 7, end in Unix ms 6, length
--     in ms 6 if it slides, otherwise 0
--   3 and 4 the same of a foreign limit, one that the last writer did not know, followed by the date
--     of its debt 6 and the date 6 at which it is forgotten, both in Unix ms
-- The key expires when every known limit is full and every foreign one is to be forgotten: an
-- absent key is a full bucket.
--
-- Rules of an owner, an argument. The columns have one place for each limit, and unused ones up to
-- four if the owner is a usual one: see quick.lua.
--   ids       id 2 bytes and p 4 each, big endian; p is 0 in an owner that is not a usual one
--   numbers   three little endian doubles each: p, r, full. Debt is in units of 1/p token, of which r
--             decay each ms, and full is the debt of an empty bucket. For a window of fixed length r is
--             the length in ms; p is that too if the window slides, and otherwise 1.
--   flags     1 byte each: 1 lenient, refuses nothing and is left uncharged; 2 soft, refuses nothing
--             and is charged; and 4 fixed window, 8 sliding window, 16 window of the calendar
--   n         1 byte, how many limits there are, and 128 more if the owner is a usual one
--
-- Numbers of an owner in ARGV[1]: for each place of its columns as many as the script says, then of
-- each limit that has a window of the calendar its start and end in Unix ms, start included, and the ends
-- of the two windows that follow.
--
-- States of owners in a reply: of a usual owner its state in version 1, of any other owner for each
-- limit the debt 7 bytes, or of a window used 7, used in the window before 7, end 6.

local EXACT = 2 ^ 53
local AHEAD = 5000
local floor, fmod, max, min, byte = math.floor, math.fmod, math.max, math.min, string.byte

-- a / b rounded up, for integers up to 2^53.
local function ceil_div(a, b)
  local rest = fmod(a, b)
  if rest > 0 then
    return (a - rest) / b + 1
  end
  return a / b
end

-- A debt in units of 1/from token, in units of 1/p, rounded up, at most the deepest overdraft.
local function convert(debt, from, p, full)
  if from ~= p then
    local rest = fmod(debt, from)
    debt = (debt - rest) / from * p
    if rest > 0 then
      debt = debt + (from * p >= EXACT and p or ceil_div(rest * p, from))
    end
  end
  return min(debt, 2 * full)
end

-- The debt after a time that may be negative.
local function decay(debt, r, elapsed)
  if elapsed <= 0 then
    return debt
  end
  return max(0, debt - r * elapsed)
end

-- Numbers of ARGV[1], and the place of the last one that was used.
local call = {read(rep('<d', #ARGV[1] / 8), ARGV[1])}
local used_numbers = 5

-- When a key is forgotten.
local function life(key)
  return now + redis.call('PTTL', key)
end

-- Sets a limit of an owner from an entry: of a token bucket a debt of a date, in units of 1/p, of a
-- window with p = 0 what was used in it, in the one before it, its end, and its length if it slid.
local function adopt(owner, limit, p, debt, date, previous, finish, length)
  local r, kind = limit.r, limit.kind
  local slides = kind == 8 and r or 0
  if (p > 0) ~= (kind == 0) or length ~= slides then
    owner.converted = true
  end
  if length > 0 and length ~= slides then
    -- What is one no longer has used what it weighs.
    if finish <= now then
      previous, debt, finish = debt, 0, finish + length
    end
    debt, previous = debt + ceil_div(previous * max(0, min(finish - now, length)), length), 0
  end
  if kind == 0 then
    if p > 0 then
      limit.debt = decay(convert(debt, p, limit.p, limit.full), r, now - date)
    elseif finish > now then
      limit.debt = min(debt, 2 * limit.capacity) * limit.p
    end
    return
  end
  local to, most = limit.to, 2 * limit.capacity
  if p > 0 then
    -- What a token bucket owed counts as spent when it was last charged.
    debt, previous = ceil_div(debt, p), 0
    finish = to and (date >= limit.from and to or 0) or date + r
  end
  debt, previous = min(debt, most), min(previous, most)
  if to then
    -- A clock that was set back into an earlier window finds what a later one has used.
    if finish > now and finish ~= to and finish ~= limit.next and finish ~= limit.after then
      finish, owner.redated, owner.converted = to, true, true
    end
  elseif finish - now > r + AHEAD then
    finish, owner.redated, owner.converted = now + r, true, true
  end
  if finish <= now then
    if kind == 8 and finish + r > now then
      previous, debt, finish = debt, 0, finish + r
    else
      previous, debt = 0, 0
    end
  end
  if kind ~= 8 then
    previous = 0
  end
  if debt + previous == 0 then
    finish = 0
  end
  limit.debt, limit.previous, limit.finish = debt, previous, finish
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

-- Reads the entries of a state, and sets the foreign ones, packed, and when the last of them is to be
-- forgotten.
local function entries(owner, state, last)
  local usual = byte(state) == 1
  local foreign, keep, at, i, known = {}, 0, 8, 0, nil
  while i < 4 and usual or not usual and at <= #state do
    local tag, id, p, debt, previous, finish, length = 1, nil, 0, nil, 0, 0, 0
    local own, drop = last, nil
    i = i + 1
    if usual then
      id, p = read('>I2I4', state, 2 + 6 * i)
      debt = read('>I7', state, 25 + 7 * i)
    else
      tag = byte(state, at)
      if tag == 1 or tag == 3 then
        id, p, debt, at = read('>I2I5I7', state, at + 1)
      elseif tag == 2 or tag == 4 then
        id, debt, previous, finish, length, at = read('>I2I7I7I6I6', state, at + 1)
      else
        error('entry of tag ' .. tag)
      end
      if p == 0 and tag % 2 == 1 then
        error('entry without a denominator')
      end
      if tag > 2 then
        own, drop, at = read('>I6I6', state, at)
      end
    end
    if own > now + AHEAD and (not drop or drop > now) then
      own, owner.redated = now, true
    end
    -- Unused places of a usual owner have no denominator.
    local unused = p == 0 and tag == 1
    local limit = not unused and find(owner, id, i)
    if limit and (not drop or drop > now) then
      adopt(owner, limit, p, debt, own, previous, finish, length)
    elseif not limit and not unused then
      if not drop then
        known = known or life(owner.key)
        drop = known
      end
      if drop > now then
        foreign[#foreign + 1] = tag % 2 == 1 and pack('>BI2I5I7I6I6', 3, id, p, debt, own, drop)
          or pack('>BI2I7I7I6I6I6I6', 4, id, debt, previous, finish, length, own, drop)
        keep = max(keep, drop)
      end
    end
  end
  owner.foreign, owner.keep = table.concat(foreign), keep
end

-- Reads the state of an owner as it is now. values is how many numbers a limit has in ARGV[1]. It
-- returns nil if now is not in a window of the calendar that the caller sent.
--   key, rules
--   usual              whether its state fits version 1
--   first              the place before its first number in ARGV[1]
--   at                 the date that the state gets when it is written
--   redated            whether the state lies so far in the future, after the clock was set back, or
--                      in a window of another policy, that even a refusal must write it
--   converted          whether a limit was charged as another kind, or the end of its window was changed
--   foreign, keep      foreign entries, and when the last of them is to be forgotten
--   limits             of each limit:
--     id, p, r, full, capacity, kind, lenient, soft   as in its rules
--     from, to, next, after   the window of the calendar, and the ends of the two that follow
--     debt             of a token bucket its debt, of a window what is used
--     previous, finish of a window: used in the one before, and its end, or 0 if it is not open
local function load(key, rules, values)
  local width = (#rules - 1) / 31
  local n, usual = byte(rules, -1), false
  if n >= 128 then
    n, usual = n - 128, true
  end
  local limits = {}
  local owner = {
    key = key, rules = rules, usual = usual, limits = limits, first = used_numbers,
    at = now, redated = false, converted = false, foreign = '', keep = 0,
  }
  used_numbers = used_numbers + width * values
  for i = 1, n do
    local p, r, full = read('<ddd', rules, 6 * width + 24 * i - 23)
    local flag = byte(rules, 30 * width + i)
    local from, to, next, after
    if flag >= 16 then
      from, to, next, after = call[used_numbers + 1], call[used_numbers + 2], call[used_numbers + 3], call[used_numbers + 4]
      used_numbers = used_numbers + 4
      if now < from or now >= to then
        return nil
      end
    end
    limits[i] = {
      id = read('>I2', rules, 6 * i - 5), p = p, r = r, full = full, capacity = full / p,
      kind = flag - flag % 4, lenient = flag % 2 == 1, soft = flag % 4 > 1, from = from, to = to, next = next, after = after,
      debt = 0, previous = 0, finish = 0,
    }
  end
  local state = redis.call('GET', key)
  if not state then
    return owner
  end
  local version, last = read('>BI6', state)
  if version ~= 2 and (version ~= 1 or #state ~= 59) then
    error('state of version ' .. version)
  end
  if last > now then
    owner.redated = last - now > AHEAD
    owner.at = owner.redated and now or last
  end
  entries(owner, state, last)
  return owner
end

-- The time of a sliding window that the one before it still counts for.
local function overlap(limit)
  return max(0, min(limit.finish - now, limit.r))
end

-- What counts as spent of a limit, in units of 1/p token.
local function level(limit)
  if limit.kind == 8 then
    return limit.debt * limit.p + limit.previous * overlap(limit)
  end
  return limit.debt
end

-- Sets what a limit owes or has used, which opens a window or closes it.
local function spend(limit, debt)
  limit.debt = debt
  if limit.kind > 0 then
    if debt + limit.previous == 0 then
      limit.finish = 0
    elseif limit.finish == 0 then
      limit.finish = limit.to or now + limit.r
    end
  end
end

-- In what the debt of a limit is counted: units of 1/p token, or tokens.
local function unit(limit)
  return limit.kind == 0 and limit.p or 1
end

-- The debt of limit i, or 0 for an unused place.
local function debt_of(limits, i)
  return limits[i] and limits[i].debt or 0
end

-- The state of an owner for a reply, which is that of a usual owner to be stored as well.
local function show(owner)
  local limits = owner.limits
  if owner.usual then
    return pack('>BI6c24I7I7I7I7', 1, owner.at, owner.rules,
      debt_of(limits, 1), debt_of(limits, 2), debt_of(limits, 3), debt_of(limits, 4))
  end
  local parts = {}
  for i = 1, #limits do
    local limit = limits[i]
    parts[i] = limit.kind == 0 and pack('>I7', limit.debt)
      or pack('>I7I7I6', limit.debt, limit.previous, limit.finish)
  end
  return table.concat(parts)
end

-- Writes the state of an owner, or removes it when it means the same as none.
local function save(owner)
  local expiry, state, limits = owner.keep, nil, owner.limits
  for i = 1, #limits do
    local limit = limits[i]
    local finish = limit.finish
    if limit.kind == 0 then
      finish = owner.at + math.ceil(limit.debt / limit.r)
    elseif limit.kind == 8 and limit.debt > 0 then
      finish = finish + limit.r
    end
    expiry = max(expiry, finish)
  end
  if expiry <= now then
    redis.call('DEL', owner.key)
    return
  end
  if owner.usual and owner.foreign == '' then
    state = show(owner)
  else
    local parts = {pack('>BI6', 2, owner.at)}
    for i = 1, #limits do
      local limit = limits[i]
      parts[i + 1] = limit.kind == 0 and pack('>BI2I5I7', 1, limit.id, limit.p, limit.debt)
        or pack('>BI2I7I7I6I6', 2, limit.id, limit.debt, limit.previous, limit.finish, limit.kind == 8 and limit.r or 0)
    end
    state = table.concat(parts) .. owner.foreign
  end
  redis.call('SET', owner.key, state, 'PXAT', expiry)
end
