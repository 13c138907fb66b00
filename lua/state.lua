-- state.lua: the stored state of an owner, and the arithmetic on it. It stands before take, settle, adjust and
-- exchange. Package internal/state has the same in Go, and a test compares both byte for byte.
--
-- State of an owner, a string, big endian. Of a fast owner, which has two to four token buckets, none of them soft,
-- in the terms of one policy, with p below 2^32, r below 2^16 and debts below 2^40, it is version 5, 60 bytes:
--   version   1 byte: 5
--   code      1 byte, the deadline, see below
--   last      6 bytes, Unix ms, the date of the debts
--   ids       4 times id 2 bytes, a hash of unit and name, p 4 and r 2: debt is in units of 1/p token, of
--     which r decay each ms
--   debts     4 times 5 bytes; unused places are zero
-- Of any other it is version 6, the mixed form:
--   version   1 byte: 6
--   deadline  6 bytes, Unix ms, 0 = not known
--   and entries, at most one of each id, each with a tag of 1 byte:
--   0 none, for a limit of the writer that counts nothing: nothing follows
--   1 token bucket           id 2, date of the debt 6, p 5, r 7, debt 7
--   2 fixed window           id 2, end in Unix ms 6, length in ms 5, used 7
--   3 sliding window         the same, and used in the window before 7
--   4 hour, 5 day, 6 month, 7 year   as 2: windows of the calendar
--   8 token bucket of which instances hold something, see exchange.lua: as 1, of the whole bucket, and in the same units what is held of its
--     capacity 7 and of r 7, and when the last lease ends in Unix ms 6. A p and an r are a thousand times those of the limit, where
--     they fit. What is left is a bucket with less capacity and a smaller r. A minute after the last lease nothing is held any more.
-- Whoever does not know a tag or a version does nothing and says so.
--
-- The key expires when every entry counts nothing any more, or some time after: an absent key is a full bucket. Its
-- deadline is when it expires. To set that is the dearest part of a write, so the deadline is some time late, and is left
-- alone while it is not before the end of all entries, and no later after that than as long again and 8192 ms. The first
-- write of a key sets it to that end. Any other that sets it takes a unit of 2^k ms, k at least 13, of which at most seven
-- fit into the time that is left, and the first multiple of it after the end. The code is 8 times (k - 12), and the number
-- of that multiple by 8; below 8 it is none. The date is that of the state, or now in the mixed form.
--
-- The terms of an entry are its tag, p and r, and length: how it comes back. They are those of the policy
-- that charged it last, which need not be that of the caller. A limit reads an entry of other terms as what
-- that counts now, in tokens rounded up; see count. A take that charges a limit writes the entry in the terms of the
-- limit, unless it counts more than the capacity of the limit: such an entry is never charged by a take.
-- A settlement that charges on does the same to token buckets, and otherwise adds to the entry in its own terms. What
-- gives back leaves an entry its terms. What a call does not charge it leaves as it is: in the mixed form byte for byte, and
-- in the form of one date on the date of the call. So nothing that is owed ever comes back faster than the policy says that
-- charged it, or the one that charges it now.
--
-- Rules of an owner, an argument, little endian but for the ids of a fast one:
--   numbers   three doubles: p, r, full. Debt is in units of 1/p token, of which r
--             decay each ms, and full is the debt of an empty bucket. For a window of fixed length r is
--             the length in ms; p is that too if the window slides, and otherwise 1.
--   id        2 bytes
--   flags     1 byte: 1 lenient, refuses nothing and is left uncharged; 2 soft, refuses nothing
--             and is charged; and 4 times the tag of its entries
--   n         1 byte, how many limits there are, and 128 more if the owner is a fast one
-- Numbers, id and flags stand together for each limit, and n after the last. Of a fast owner, which has two to four limits, there are four
-- places in columns: ids as in its state, then all numbers, then all flags. In an unused one p and r are 1, and full is more than any debt.
--
-- Numbers of an owner in ARGV[1]: for each place of its columns as many as the script says, then of
-- each limit that has a window of the calendar its start and end in Unix ms, start included.
--
-- States of owners in a reply: version 5, of a fast owner, or version 6 with an entry or none for each limit. Code and
-- deadline are 0 unless the call has written just that.
--
-- Takes: now, read, pack, rep
-- Declares: floor, fmod, max, min, byte, sub, ceil_div, convert, decay, call, used_numbers, gone, overlap, count,
--   packed, whole, lease, find, enter, fast_entries, read_entry, mixed_entries, load, level, spend, restate, adopt, most_sliding, adopts,
--   room, kept, fits, fast_state, show, save

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
local used_numbers = HEAD_NUMBERS

-- When an entry counts nothing any more.
local function gone(e)
  if e.tag == TOKEN then
    return e.held and e.till + min(LEASE_FORGOTTEN + ceil_div(e.debt + e.held, e.base), LEASE_LIFE) or e.date + ceil_div(e.debt, e.r)
  elseif e.tag == SLIDING and e.debt > 0 then
    return e.finish + e.length
  end
  return e.finish
end

-- The time of a sliding window that the one before it still counts for.
local function overlap(e)
  return e.tag == SLIDING and max(0, min(e.finish - now, e.length)) or 0
end

-- What an entry of other terms counts of a limit: its tokens, rounded up, and units of 1/p of the limit, at most 2^53.
-- Between token buckets the faster of the two refills brings it back, that of the limit since the date of the
-- entry, unless that owes more than can be counted in units of the limit.
local function count(limit, e)
  if e.tag ~= TOKEN or limit.tag ~= TOKEN then
    local tokens = e.debt
    if e.tag == TOKEN then
      tokens = ceil_div(decay(e.debt, e.r, now - e.date), e.p)
    elseif e.tag == SLIDING then
      tokens = tokens + ceil_div(e.previous * overlap(e), e.length)
    end
    return tokens, min(tokens * limit.p, EXACT)
  end
  local units = convert(e.debt, e.p, limit.p)
  if units < EXACT and limit.r / limit.p >= e.r / e.p then
    units = decay(units, limit.r, now - e.date)
  else
    units = convert(decay(e.debt, e.r, now - e.date), e.p, limit.p)
  end
  return ceil_div(units, limit.p), units
end

-- An entry as it is stored.
local function packed(e)
  if e.held then
    return pack(LEASED_FORMAT, LEASED, e.id, e.date, e.p, e.base, e.debt, e.held, e.rate, e.till)
  elseif e.tag == TOKEN then
    return pack(LONG_ENTRY_FORMAT, e.tag, e.id, e.date, e.p, e.r, e.debt)
  elseif e.tag == SLIDING then
    return pack(LONG_ENTRY_FORMAT, e.tag, e.id, e.finish, e.length, e.debt, e.previous)
  end
  return pack(ENTRY_FORMAT, e.tag, e.id, e.finish, e.length, e.debt)
end

-- The limit of an id, or nil. The order is usually that of the last writer: i is tried first.
local function find(limits, id, i)
  if limits[i] and limits[i].id == id then
    return limits[i]
  end
  for j = 1, #limits do
    if limits[j].id == id then
      return limits[j]
    end
  end
end

-- Makes what was held of an entry owed, and its date now.
local function whole(e)
  e.debt, e.date, e.held = min(decay(e.debt, e.r, now - e.date) + e.held, EXACT), max(now, e.date), nil
end

-- Makes a limit, and what it owes, that of what is left while something is held.
local function lease(limit, e)
  local scale = limit.full <= MAX_SCALED_FULL and limit.p < MAX_SCALED_P and limit.r <= MAX_SCALED_R and LEASE_SCALE or 1
  local p = scale * limit.p
  limit.held, limit.rate, limit.base, limit.till = convert(e.held, e.p, p), convert(e.rate, e.p, p), scale * limit.r, e.till
  limit.scale = scale
  limit.full, limit.p, limit.one = scale * limit.full - limit.held, p, p
  limit.debt, limit.at = convert(decay(e.debt, e.r, now - e.date), e.p, p), max(now, e.date)
end

-- Takes an entry in: into its limit, or packed if the caller has none of that id. An entry that lies so far in the
-- future that the clock must have been set back is dated anew: otherwise it would not come back until the clock has
-- caught up.
local function enter(owner, i, e)
  if e.one == 0 or e.length == 0 or e.r == 0 then
    error('entry without a length or a rate')
  end
  if e.held and now >= e.till + LEASE_FORGOTTEN then
    whole(e)
    e.r, e.raw = e.base, nil
    if e.debt == 0 then
      return
    end
  elseif e.held and e.till - now > MAX_LEASE + AHEAD then
    e.till, e.raw, owner.redated = now + MAX_LEASE, nil, true
  end
  if e.tag == TOKEN and e.date - now > AHEAD then
    e.date, e.raw, owner.redated = now, nil, true
  elseif e.tag > TOKEN and e.finish - now > (e.tag < HOUR and e.length or 2 * e.length) + AHEAD then
    e.finish, e.raw, owner.redated = now + e.length, nil, true
  end
  local limit, ends = find(owner.limits, e.id, i), gone(e)
  if ends <= now then
    return
  end
  e.raw = e.raw or packed(e)
  if not limit then
    owner.foreign[#owner.foreign + 1] = e.raw
    owner.keep = max(owner.keep, ends)
    return
  end
  limit.raw, limit.ends = e.raw, ends
  if e.held and limit.tag == TOKEN then
    return lease(limit, e)
  elseif e.held then
    whole(e)
  end
  local same = e.tag == limit.tag
  if e.tag == TOKEN then
    limit.at, same = max(now, e.date), same and e.p == limit.p and e.r == limit.r
  else
    if e.finish <= now then
      e.previous, e.debt, e.finish = e.debt, 0, e.finish + e.length
    end
    same = same and (e.tag < HOUR and e.length == limit.length or e.finish == limit.to)
  end
  if not same then
    limit.other, limit.tokens, limit.units = e, count(limit, e)
  end
  if e.tag == TOKEN then
    local debt = decay(e.debt, e.r, now - e.date)
    e.debt, e.repaid = debt, e.debt - debt
  end
  if same then
    limit.debt, limit.previous, limit.finish = e.debt, e.previous, e.finish
  end
end

-- Reads a state of version 5.
local function fast_entries(owner, state)
  local code, last = byte(state, 2), read(DATE_FORMAT, state, FAST_DATE)
  if code >= CODE_STEPS then
    local unit = 2 ^ (floor(code / CODE_STEPS) + CODE_SHIFT)
    local deadline = last - last % (CODE_STEPS * unit) + code % CODE_STEPS * unit
    owner.code, owner.dated, owner.deadline = code, last, deadline > last and deadline or deadline + CODE_STEPS * unit
  end
  for i = 1, FAST_LIMITS do
    local debt = read(FAST_DEBT_FORMAT, state, FAST_DEBTS + FAST_DEBT_SIZE * i)
    -- An unused place owes nothing.
    if debt > 0 then
      local id, p, r = read(FAST_ID_FORMAT, state, FAST_IDS + RULE_ID_SIZE * i)
      enter(owner, i, {tag = TOKEN, id = id, date = last, p = p, one = p, r = r, debt = debt, previous = 0})
    end
  end
end

-- Reads an entry, that of a limit if the order is that of the last writer, and returns where it ends. An open window in
-- the terms of its limit is the usual case, and needs no table.
local function read_entry(owner, i, state, start)
  local tag, id, date, length, debt, at = read(ENTRY_FORMAT, state, start)
  local limit, more = owner.limits[i], 0
  if tag == LEASED then
    local owed, held, rate, till, after = read(HELD_PARTS_FORMAT, state, at)
    enter(owner, i, {tag = TOKEN, id = id, date = date, p = length, one = length, r = debt > 0 and max(1, debt - rate) or 0, debt = owed,
      previous = 0, raw = sub(state, start, after - 1), held = held, rate = rate, base = debt, till = till})
    return after
  elseif tag == TOKEN or tag == SLIDING then
    more, at = read(DEBT_FORMAT, state, at)
  elseif tag > YEAR then
    error('entry of tag ' .. tag)
  end
  local raw = sub(state, start, at - 1)
  if limit and limit.id == id and tag == limit.tag and date > now
    and (tag < HOUR and length == limit.length and date - now <= length + AHEAD or date == limit.to) then
    limit.debt, limit.previous, limit.finish, limit.raw = debt, more, date, raw
    limit.ends = tag == SLIDING and debt > 0 and date + length or date
  elseif tag == TOKEN then
    enter(owner, i, {tag = tag, id = id, date = date, p = length, one = length, r = debt, debt = more, previous = 0, raw = raw})
  else
    enter(owner, i, {tag = tag, id = id, finish = date, length = length, one = 1, debt = debt, previous = more, raw = raw})
  end
  return at
end

-- Reads the entries of a state of version 6.
local function mixed_entries(owner, state)
  local at, i = MIXED_ENTRIES, 0
  while at <= #state do
    i = i + 1
    if byte(state, at) == 0 then
      at = at + 1
    else
      at = read_entry(owner, i, state, at)
    end
  end
end

-- Reads the state of an owner as it is now. values is how many numbers a limit has in ARGV[1]. It
-- returns nil if now is not in a window of the calendar that the caller sent.
--   key, rules
--   fast               whether its limits fit version 5
--   exists             whether it had a state
--   deadline, code, dated  the deadline, or 0, and of version 5 its code, or 0, and its date
--   first              the place before its first number in ARGV[1]
--   text               the state for a reply, once it is written
--   redated            whether an entry was dated anew, so that even a refusal must write it
--   foreign, keep      entries of other limits, packed, and when the last of them counts nothing any more
--   limits             of each limit:
--     id, p, r, full, capacity, tag, lenient, soft   as in its rules
--     one              in what its debt is counted: units of 1/p token, or of a window tokens
--     from, to         the window of its calendar
--     length           how long its windows are
--     debt             of a token bucket its debt, of a window what is used
--     previous, finish of a window: used in the one before, and its end, or 0 if it is not open
--     at               the date of a debt that is written: now, or later if that of the entry is
--     other            the entry as it is now if it is of other terms, of which the limit counts tokens and units;
--                      repaid is what has come back since its date
--     changed          whether the call has changed it, and part how it is stored then
--     raw, ends        its entry as it was read, and when that counts nothing any more
--     held, rate, base, till, scale   where instances hold something: of the capacity, of what decays each ms, what decays of the whole, until
--                      when, and how many units one of the limit is. p, one and full are those of what is left then
local function load(key, rules, values)
  local n, is_fast = byte(rules, -1), false
  if n >= FAST_OWNER then
    n, is_fast = n - FAST_OWNER, true
  end
  local width = is_fast and FAST_LIMITS or n
  local limits = {}
  local owner = {
    key = key, rules = rules, fast = is_fast, limits = limits, first = used_numbers,
    redated = false, foreign = {}, keep = 0, deadline = 0, code = 0,
  }
  used_numbers = used_numbers + width * values
  for i = 1, n do
    local p, r, full, id, flag
    if is_fast then
      p, r, full = read(FAST_NUMBERS_FORMAT, rules, FAST_NUMBERS + RULE_NUMBERS_SIZE * i)
      id, flag = read(RULE_ID_FORMAT, rules, RULE_ID_SIZE * (i - 1) + 1), byte(rules, FAST_FLAGS + i)
    else
      p, r, full, id, flag = read(RULE_FORMAT, rules, RULE_SIZE * (i - 1) + 1)
    end
    local tag = floor(flag / TAG)
    local one, from, to, length = 1, nil, nil, nil
    if tag >= HOUR then
      from, to = call[used_numbers + 1], call[used_numbers + 2]
      used_numbers = used_numbers + 2
      if now < from or now >= to then
        return nil
      end
      length = to - from
    elseif tag == TOKEN then
      one = p
    else
      length = r
    end
    limits[i] = {
      id = id, p = p, r = r, full = full, capacity = full / p,
      tag = tag, lenient = flag % SOFT == LENIENT, soft = flag % TAG >= SOFT, one = one, from = from, to = to, length = length,
      debt = 0, previous = 0, finish = 0, at = now,
    }
  end
  local state = redis.call('GET', key)
  if state then
    local version = byte(state)
    owner.exists = true
    if version == MIXED_VERSION then
      owner.deadline = read(DATE_FORMAT, state, 2)
      mixed_entries(owner, state)
    elseif version == FAST_VERSION and #state == FAST_SIZE then
      fast_entries(owner, state)
    else
      error('state of version ' .. version)
    end
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

-- Sets what the entry of a limit owes or has used, in its terms. A token bucket of other terms that is charged on has
-- the date of now; one that is given something back keeps its date: whoever looks then finds as much more.
local function restate(limit, debt)
  local e = limit.other
  if not e then
    return spend(limit, debt)
  elseif e.tag == TOKEN and debt > e.debt then
    e.date, e.repaid = limit.at, 0
  end
  e.debt, limit.changed = debt, true
end

-- Puts the entry of a limit into the terms of the limit.
local function adopt(limit)
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

-- The most tokens of one sliding window: as many may have been in the one before.
local function most_sliding(length)
  return floor(EXACT / 2 / length)
end

-- Whether what is charged on to an entry of other terms puts it into those of the limit: it is a token bucket that
-- owes no more than the capacity. A window would end early.
local function adopts(limit)
  return limit.other.tag == TOKEN and limit.units <= limit.full
end

-- How many tokens a limit that cannot refuse them is charged at most: down to twice its capacity, and never more
-- than can be counted.
local function room(limit)
  local e, tokens = limit.other, nil
  if not e or adopts(limit) then
    local debt = limit.debt
    if e then
      debt = limit.tag == TOKEN and limit.units or limit.tokens
    end
    tokens = floor((2 * limit.capacity * limit.one - debt) / limit.one)
    if limit.tag == SLIDING then
      tokens = min(tokens, most_sliding(limit.length) - debt)
    end
  else
    tokens = 2 * limit.capacity - limit.tokens
    tokens = min(tokens, e.tag == SLIDING and most_sliding(e.length) - e.debt or floor((EXACT - 1 - e.debt) / e.one))
  end
  return max(0, tokens)
end

-- The entry of a limit for the state of its owner, and when that counts nothing any more. It returns nil if it
-- counts nothing now.
local function kept(limit)
  if limit.part then
    return limit.part, limit.ends
  end
  local e = limit.other or limit
  if not limit.changed then
    return limit.raw, limit.ends
  elseif e.debt + e.previous == 0 and not e.held then
    return nil
  end
  if e == limit then
    e.date = limit.at
  elseif e.tag == TOKEN then
    e.debt = e.debt + e.repaid
  end
  limit.part, limit.ends = packed(e), gone(e)
  return limit.part, limit.ends
end

-- Whether the limits of an owner fit version 5.
local function fits(owner)
  if not owner.fast then
    return false
  end
  for i = 1, #owner.limits do
    local limit = owner.limits[i]
    local e = limit.other
    if e and e.debt + e.previous > 0 or limit.held or limit.debt > MAX_FAST_DEBT then
      return false
    end
  end
  return true
end

-- The limits of an owner in version 5, when the last of them owes nothing any more, and their date.
local function fast_state(owner, code)
  local limits, date, expiry = owner.limits, now, 0
  for i = 1, #limits do
    if limits[i].debt > 0 then
      date = max(date, limits[i].at)
    end
  end
  for i = 1, #limits do
    if limits[i].debt > 0 then
      expiry = max(expiry, date + ceil_div(limits[i].debt, limits[i].r))
    end
  end
  local a, b, c, d = limits[1], limits[2], limits[3], limits[4]
  return pack(FAST_FORMAT, FAST_VERSION, code, date, owner.rules,
    a and a.debt or 0, b and b.debt or 0, c and c.debt or 0, d and d.debt or 0), expiry, date
end

-- The state of an owner for a reply.
local function show(owner)
  if owner.text then
    return owner.text
  elseif fits(owner) then
    return (fast_state(owner, 0))
  end
  local parts = {pack(MIXED_FORMAT, MIXED_VERSION, 0)}
  for i = 1, #owner.limits do
    parts[i + 1] = kept(owner.limits[i]) or NO_ENTRY
  end
  return table.concat(parts)
end

-- Writes the state of an owner, or removes it when it means the same as none. It sets its text, the state for a reply.
local function save(owner)
  local expiry, date, parts = owner.keep, now, nil
  if fits(owner) then
    owner.text, expiry, date = fast_state(owner, 0)
  end
  if not owner.text or owner.foreign[1] then
    expiry, date, parts = owner.keep, now, {}
    for i = 1, #owner.limits do
      local part, ends = kept(owner.limits[i])
      parts[i] = part or NO_ENTRY
      expiry = max(expiry, part and ends or 0)
    end
  end
  local deadline, code = owner.deadline, owner.code
  if expiry <= now then
    redis.call('DEL', owner.key)
    deadline = 0
  end
  local holds = deadline >= expiry and deadline - expiry <= expiry - date + DEADLINE_ROOM
    and (parts or code > 0 and date >= owner.dated)
  if not holds and expiry > now then
    deadline, code = expiry, 0
    if owner.exists then
      local _, shift = math.frexp((expiry - date) / UNITS_LEFT)
      shift = max(shift, UNIT_SHIFT)
      local steps = floor(expiry / 2 ^ shift) + 1
      deadline, code = steps * 2 ^ shift, CODE_STEPS * (shift - CODE_SHIFT) + steps % CODE_STEPS
    end
  end
  local state
  if parts then
    state = pack(MIXED_FORMAT, MIXED_VERSION, deadline < END_OF_DATES and deadline or 0) .. table.concat(parts)
    owner.text = owner.text or state
    state = state .. table.concat(owner.foreign)
  elseif expiry > now then
    owner.text = pack(FAST_HEAD_FORMAT, FAST_VERSION, code) .. sub(owner.text, FAST_DATE)
    state = owner.text
  end
  if holds then
    redis.call('SET', owner.key, state, 'KEEPTTL')
  elseif expiry > now then
    redis.call('SET', owner.key, state, 'PXAT', deadline)
  end
end
