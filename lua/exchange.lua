-- exchange.lua: a holder, which leases parts of the limits of some owners, gives back what it does not need, and gets more. What it leases is
-- a bucket of its own until the lease ends, so that it asks nobody for each operation; of the stored bucket the rest is left, see state.lua. A part
-- of a window is counted as used until it comes back, and never comes back after the window.
--
-- Exchanges of a holder are numbered from 1 on, and the same one may come any number of times: it is booked once, and answered
-- alike. Nothing is given out twice, so that all parts together are never more than the limit.
--
-- KEYS, all under one hash tag:
--   KEYS[o]           state of owner o, for o = 1 .. owners
--   KEYS[owners + o]  its holdings
--   and the key that known_overrides.lua takes away
-- ARGV:
--   ARGV[1]      numbers, see clock.lua: extra is the length of the lease in ms; of each limit, in the units of its leased bucket or in tokens of a
--                window: what the holder gives back of capacity, rate and level, which it has no longer; what it is asked for in a ms, what it
--                has, what it would have more, the largest amount it is asked for, and an amount that only the rest can have, and has
--                not, or 0
--   ARGV[2]      holder 8 bytes, number of the exchange 6, in ms the time of its own clock 6, when it was answered last, by that clock, 6, and how
--                long it is until its next one 6, 1 if it leaves with this one, 1, and for each owner the place of its record, 2
--   ARGV[2 + o]  rules of owner o, see state.lua
--
-- Holdings, a string, big endian: version 1 byte: 3, limits 1, holders 2, when the next lease may have ended in Unix ms 6, how many exchanges there
-- were 6, when the last lease ends 6; for each limit id 2, p of its units 5, and of all holders capacity 7, rate 7,
-- demand 7, what they are short of what is due to them 7, what they have above it 7, what only the rest can have 7, and until when
-- that is wanted 6; and records. A record is holder 8, number 6, end of the lease 6, how many exchanges there were with its last one 6, and when its
-- last number came for the first time 6; three marks, the newest first, each of a moment of its own clock in ms, and of how many exchanges there had been by
-- then at least: that number 6, the moment 6; and for each limit its own
-- capacity 7, rate 7, level after its last exchange 7, demand 7, short 7, above 7, end of the window that it has something of 6, and what it was given. A free place is
-- zero bytes.
-- Given: added capacity 7, rate 7 and level 7, due capacity 7 and rate 7, left for all 7, end of the window 6, 1 if others are short 1.
--
-- Reply, a string, big endian: outcome 1 byte (0 too late, 1 done, 10 other window, 11 other overrides), now in Unix ms 6, and if done for each
-- owner: 1 byte, 0 booked, 1 not known: what it holds ends, 2 older than the last one, 3 leased under other limits, or owing more than
-- they have, 4 no room; place 2, holders 2; and if booked what is given of each limit.
--
-- A lease is taken back only by an exchange of a holder that has a mark of a lease ago, by its own clock, since when the other one was not there: TIME
-- may step. What is taken back has no level.
--
-- Expiry: a state as state.lua says; holdings a minute after the last lease.
--
-- Takes: now, extra, read, pack, rep, call, floor, min, max, byte, sub, ceil_div, load, level, spend, adopt, lease, save
-- Declares: owners, holder, number, clock_there, heard, beat, leaving, head, all, texts, replies, back, due, give, give_window, begin, parts, replace, remove,
--   find_record, mature, reap, drop, meet, write

local owners = #KEYS / 2
local holder, number, clock_there, heard, beat, leaving, head = read(EXCHANGE_FORMAT, ARGV[2])
local all, texts, replies = {}, {}, {}
for o = 1, owners do
  all[o] = load(KEYS[o], ARGV[2 + o], EXCHANGE_NUMBERS)
  if not all[o] then
    return pack(REPLY_FORMAT, OTHER_WINDOW, now)
  end
end
for o = 1, owners do
  local text = redis.call('GET', KEYS[owners + o]) or ''
  local limits = #text > 1 and byte(text, 2) or 0
  local sums = HOLDINGS_HEAD + SUM_SIZE * limits
  if text ~= '' and (byte(text) ~= HOLDINGS_VERSION or #text < sums or (#text - sums) % (HOLDING_HEAD + PART_SIZE * limits) > 0) then
    error('holdings of another version')
  end
  texts[o] = text
end

-- Takes something back that was held of a limit, with a level. The debt is less than nothing by what of the level there is no room for.
local function back(limit, capacity, rate, more)
  limit.taken, limit.flow = limit.taken - capacity, limit.flow - rate
  -- Where the clock was set back the debt has a date that is ahead, and what has come back to the holder since then would come back once more when
  -- the clock is right again. It is owed: for as long as that can have been.
  local owed = limit.at > now and min(rate * (AHEAD - limit.at + now), EXACT) or 0
  limit.debt = min(limit.debt + capacity + owed, EXACT) - more
end

-- What the holder should have of a limit: in proportion to what is asked for.
local function due(limit, sum, holders, demand, largest)
  local least = limit.whole * 0.05 / holders
  local share = (demand + least) / (sum.demand + least * holders)
  local needs = 1.3 * demand
  local rate = floor(0.98 * min(limit.whole * share, needs + least))
  local most = 1.2 * beat * max(rate, needs) + 4 * largest
  return floor(min(0.75 * limit.size * share, most)), rate
end

-- Books what the holder gives back of a token bucket, and gives it more. n is the place before its numbers.
local function give(limit, sum, mine, holders, n)
  local capacity, rate = min(call[n + 1], mine.capacity), min(call[n + 2], mine.rate)
  back(limit, capacity, rate, call[n + 3])
  mine.capacity, mine.rate = mine.capacity - capacity, mine.rate - rate
  sum.capacity, sum.rate = sum.capacity - capacity, sum.rate - rate
  local demand = min(call[n + 4], MOST_DEMAND)
  sum.demand, mine.demand = sum.demand + demand - mine.demand, demand
  if leaving == 1 then
    limit.debt = max(0, limit.debt)
    return pack(GIVEN_FORMAT, 0, 0, 0, 0, 0, max(0, limit.size - limit.taken - limit.debt), 0, 0)
  end
  local most, flow = due(limit, sum, holders, mine.demand, call[n + 7])
  local left = limit.size - limit.taken
  rate = max(0, min(flow - mine.rate, limit.whole - limit.flow))
  -- A quarter stays, for what only the rest can have.
  capacity = max(0, min(most - mine.capacity, left - ceil_div(limit.size, 4)))
  local space = max(0, mine.capacity + capacity - call[n + 5])
  local want = min(max(0, call[n + 6]), space)
  local has = left - limit.debt
  if 2 * has > left then
    -- The rest is rich, and would be full before the holder is: with room for what flows until somebody notices.
    want = max(want, space - floor(0.3 * beat * (mine.rate + rate)))
  end
  local more = max(0, min(want, has - sum.wanted))
  -- What goes of the capacity leaves no more behind than there is room for, and what there was no room for goes back.
  local over = capacity - more - limit.debt
  if over > 0 then
    more = more + min(over, max(0, space - more))
  end
  limit.taken, limit.flow, limit.debt = limit.taken + capacity, limit.flow + rate, max(0, min(limit.debt - capacity + more, EXACT))
  mine.capacity, mine.rate = mine.capacity + capacity, mine.rate + rate
  mine.level = max(0, min(call[n + 5] + more, mine.capacity))
  sum.capacity, sum.rate = sum.capacity + capacity, sum.rate + rate
  local short, spare = min(max(0, flow - mine.rate), MOST_DEMAND), min(max(0, mine.rate - flow), MOST_DEMAND)
  sum.short, sum.spare = sum.short + short - mine.short, sum.spare + spare - mine.spare
  mine.short, mine.spare = short, spare
  local contended = min(sum.short - (limit.whole - limit.flow), sum.spare) > 0.03 * limit.whole
  return pack(GIVEN_FORMAT, capacity, rate, more, most, flow, max(0, limit.size - limit.taken - limit.debt), 0, contended and 1 or 0)
end

-- Gives the holder a part of what is left of a window.
local function give_window(limit, sum, mine, holders, n)
  local returned = min(call[n + 3], limit.debt)
  if returned > 0 and not limit.other and limit.finish == mine.window then
    spend(limit, limit.debt - returned)
  end
  local left = max(0, floor((limit.full - level(limit)) / limit.p))
  local more = max(0, min(call[n + 6], floor(left / (4 * holders)), left - sum.wanted))
  if more > 0 and leaving == 0 then
    if limit.other then
      adopt(limit)
    end
    spend(limit, limit.debt + more)
  else
    more = 0
  end
  mine.window = limit.other and 0 or limit.finish
  mine.level = max(0, min(call[n + 5] + more, EXACT))
  return pack(GIVEN_FORMAT, 0, 0, more, 0, 0, left - more, mine.window, 0)
end

-- Reads the limits of an owner for their exchange. It returns false if one cannot be leased now.
local function begin(owner, sums)
  for i = 1, #owner.limits do
    local limit, sum = owner.limits[i], sums[i]
    if limit.soft or limit.other and limit.units > limit.full then
      return false
    end
    local one = 1
    if limit.tag == TOKEN then
      if not limit.held then
        local owed = level(limit)
        limit.other = nil
        lease(limit, {held = 0, rate = 0, p = 1, till = 0, debt = 0, r = 1, date = limit.at})
        limit.debt = owed * limit.scale
        if limit.debt > EXACT then
          -- It was charged under a larger capacity.
          return false
        end
      end
      limit.size, limit.whole = limit.full + limit.held, limit.base
      one = limit.p
    end
    if not sum then
      sum = {id = limit.id, p = one, capacity = 0, rate = 0, demand = 0, short = 0, spare = 0, wanted = 0, till = 0}
      sums[i] = sum
    end
    if sum.id ~= limit.id or sum.p ~= one then
      return false
    end
    if limit.tag == TOKEN then
      limit.taken, limit.flow = max(limit.held, sum.capacity), max(limit.rate, sum.rate)
    end
  end
  return true
end

-- The part that a record has of each limit.
local function parts(h, at)
  local all = {}
  for i = 1, #h.sums do
    local place = at * h.size + HOLDING_HEAD + PART_SIZE * (i - 1) + 1
    local part = {}
    part.capacity, part.rate, part.level, part.demand, part.short, part.spare, part.window, place = read(PART_FORMAT, h.records, place)
    part.given = sub(h.records, place, place + GIVEN_SIZE - 1)
    all[i] = part
  end
  return all
end

-- Puts something into the place of a record.
local function replace(h, at, record)
  h.records = sub(h.records, 1, at * h.size) .. record .. sub(h.records, (at + 1) * h.size + 1)
end

-- Forgets the record in a place.
local function remove(h, at)
  local all_parts = parts(h, at)
  for i = 1, #h.sums do
    local sum, part = h.sums[i], all_parts[i]
    sum.capacity, sum.rate, sum.demand = sum.capacity - part.capacity, sum.rate - part.rate, sum.demand - part.demand
    sum.short, sum.spare = sum.short - part.short, sum.spare - part.spare
  end
  replace(h, at, rep('\0', h.size))
  h.count = h.count - 1
end

-- The place of a record by its holder, which says where it was, or nil.
local function find_record(h, id, at)
  if sub(h.records, at * h.size + 1, at * h.size + HOLDER_SIZE) == id then
    return at
  end
  for i = 0, #h.records / h.size - 1 do
    if sub(h.records, i * h.size + 1, i * h.size + HOLDER_SIZE) == id then
      return i
    end
  end
end

-- Whether a mark is of a lease ago, by the clock of its holder.
local function mature(mark, mark_at)
  return mark > 0 and clock_there - mark_at > extra + ceil_div(extra, LEASE_DRIFT - 1)
end

-- Takes back what those hold whose leases have ended, and who were not there since there were so many exchanges.
local function reap(h, limits, mine, silent)
  h.reap = now + extra
  for i = 0, #h.records / h.size - 1 do
    local id, _, ends, order = read(HOLDING_FORMAT, h.records, i * h.size + 1)
    if i ~= mine and id ~= NO_HOLDER then
      if ends + LEASE_MARGIN <= now and order <= silent then
        remove(h, i)
      else
        h.reap = min(h.reap, ends)
      end
    end
  end
  h.reap = max(h.reap, now + floor(extra / 8) - LEASE_MARGIN)
  for i = 1, #limits do
    if limits[i].tag == TOKEN then
      back(limits[i], limits[i].taken - h.sums[i].capacity, limits[i].flow - h.sums[i].rate, 0)
    end
  end
end

-- Gives back all that a record has of the limits, without a level.
local function drop(h, limits, at)
  local all_parts = parts(h, at)
  for i = 1, #limits do
    if limits[i].tag == TOKEN then
      back(limits[i], all_parts[i].capacity, all_parts[i].rate, 0)
    end
  end
  remove(h, at)
end

-- Finds the record of the holder and judges the number of the exchange. It makes a record for who is new. It returns the status, the
-- place, the number of the exchange before, and what the record says of when the holder was there, packed.
local function meet(h, limits, at)
  at = find_record(h, holder, at)
  local last, base, latest, latest_at, earlier, earlier_at, earliest, earliest_at, _ = 0, 0, 0, 0, 0, 0, 0, 0, nil
  if not at then
    if number ~= 1 or leaving == 1 then
      return NOT_KNOWN
    end
    at = find_record(h, NO_HOLDER, #h.records / h.size)
    if not at then
      at = #h.records / h.size
      if at >= MAX_HOLDERS then
        return NO_HOLDING
      end
    end
    replace(h, at, holder .. rep('\0', h.size - HOLDER_SIZE))
    h.count = h.count + 1
  else
    _, last, _, _, base, latest, latest_at, earlier, earlier_at, earliest, earliest_at = read(HOLDING_FORMAT, h.records, at * h.size + 1)
    -- Who is new does not know how long it was before it came.
    if number >= last and now >= h.reap + LEASE_MARGIN then
      local silent = mature(latest, latest_at) and latest or mature(earlier, earlier_at) and earlier or mature(earliest, earliest_at) and earliest
      if silent then
        reap(h, limits, at, silent)
      end
    end
  end
  if number < last then
    return OLD_EXCHANGE, at
  elseif number > last + 1 then
    -- What is stored is older than what the holder was told.
    drop(h, limits, at)
    return NOT_KNOWN, at
  end
  h.till, h.order = max(h.till, now + extra), h.order + 1
  if number ~= last then
    if last > 0 then
      if latest_at > heard then
        latest, earlier, earliest = 0, 0, 0
        latest_at, earlier_at, earliest_at = 0, 0, 0
      end
      if latest == 0 or heard - latest_at >= floor(2 * extra / 5) then
        latest, latest_at, earlier, earlier_at, earliest, earliest_at = base, heard, latest, latest_at, earlier, earlier_at
      end
    end
    base = h.order
  end
  return EXCHANGED, at, last, pack(MARKS_FORMAT, h.order, base, latest, latest_at, earlier, earlier_at, earliest, earliest_at)
end

-- Stores what an exchange has left of the owner, and of who holds what.
local function write(owner, h, key)
  local held = false
  for i = 1, #owner.limits do
    local limit = owner.limits[i]
    if limit.tag == TOKEN then
      if h.count == 0 and limit.taken + limit.flow == 0 then
        -- Rounded up, by less than a unit.
        limit.debt, limit.held = ceil_div(limit.debt, limit.scale), nil
        limit.p = limit.p / limit.scale
        limit.one = limit.p
      else
        held = true
        limit.held, limit.rate, limit.till = limit.taken, limit.flow, max(h.till, limit.till, now)
      end
      limit.changed = true
    end
  end
  local changed = owner.redated
  for i = 1, #owner.limits do
    changed = changed or owner.limits[i].changed
  end
  if changed then
    save(owner)
  end
  while #h.records > 0 and sub(h.records, -h.size, HOLDER_SIZE - h.size - 1) == NO_HOLDER do
    h.records = sub(h.records, 1, -h.size - 1)
  end
  if held or h.count > 0 then
    local text = pack(HOLDINGS_FORMAT, HOLDINGS_VERSION, #h.sums, h.count, h.reap, h.order, h.till)
    for i = 1, #h.sums do
      local s = h.sums[i]
      text = text .. pack(SUM_FORMAT, s.id, s.p, s.capacity, s.rate, s.demand, s.short, s.spare, s.wanted, s.till)
    end
    redis.call('SET', key, text .. h.records, 'PXAT', max(h.till, h.reap) + LEASE_FORGOTTEN)
  else
    redis.call('DEL', key)
  end
end

for o = 1, owners do
  local owner, text, sums, at = all[o], texts[o], {}, nil
  local limits, place = owner.limits, HOLDINGS_HEAD + 1
  local h = {sums = sums, count = 0, reap = now + extra, order = 0, till = 0, size = HOLDING_HEAD + PART_SIZE * #limits, records = ''}
  local same, given, status = text == '' or byte(text, 2) == #limits, {}, OTHER_HOLDINGS
  at, head = read(PLACE_FORMAT, ARGV[2], head)
  if text ~= '' then
    local _
    _, _, h.count, h.reap, h.order, h.till = read(HOLDINGS_FORMAT, text)
  end
  if text ~= '' and same then
    for i = 1, #limits do
      local s = {}
      s.id, s.p, s.capacity, s.rate, s.demand, s.short, s.spare, s.wanted, s.till, place = read(SUM_FORMAT, text, place)
      sums[i] = s
    end
    h.records = sub(text, place)
  end
  if same and begin(owner, sums) then
    local last, marks
    status, at, last, marks = meet(h, limits, at)
    if status == EXCHANGED then
      local mine, record = parts(h, at), pack(LEASE_FORMAT, holder, number, now + extra) .. marks
      for i = 1, #limits do
        local limit, sum, part = limits[i], sums[i], mine[i]
        if last ~= number then
          local n = owner.first + EXCHANGE_NUMBERS * (i - 1)
          if call[n + 8] > 0 then
            sum.wanted, sum.till = call[n + 8], now + extra
          elseif now >= sum.till then
            sum.wanted = 0
          end
          part.given = (limit.tag == TOKEN and give or give_window)(limit, sum, part, h.count, n)
        end
        given[i] = part.given
        record = record .. pack(PART_FORMAT, part.capacity, part.rate, part.level, part.demand, part.short, part.spare, part.window) .. part.given
      end
      replace(h, at, record)
    end
  else
    at = nil
  end
  replies[o] = pack(EXCHANGED_FORMAT, status, at or 0, h.count) .. table.concat(given)
  if status == EXCHANGED or status == NOT_KNOWN and at then
    if leaving == 1 and status == EXCHANGED then
      drop(h, limits, at)
    end
    write(owner, h, KEYS[owners + o])
  end
end
return pack(REPLY_FORMAT, APPLIED, now) .. table.concat(replies)
