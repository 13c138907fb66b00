-- shard.lua: a shard, a key on another Redis than that of home, holds parts of the limits of a tenant as an instance does that leases of home, see
-- exchange.lua, and many instances take from it. What it holds is a bucket of its own until its lease ends. One of the instances exchanges it with
-- home: it offers, which stores the message before it is sent, sends that, and puts in what home has answered. Whoever dies between is replaced
-- by the next one, who is told the same message: home books it once.
--
-- KEYS, all under one hash tag:
--   KEYS[1]  the record of the shard
--   KEYS[2]  the marker of what is put back; only where something is
-- ARGV:
--   ARGV[1]  numbers, see clock.lua: extra is 1 to take, 2 to offer, 3 to offer if the caller did so last and it is time, 4 to put in an answer, 5 to put back
--   ARGV[2]  the instance 8 bytes, how the shard is called if it begins anew 8, the shard 8 and the number of the exchange 6 that the caller
--            knows or that were answered, what the clock of the shard says at least by what the caller knows in Unix ms 6, 0 if it knows nothing, 6
--            more: its own clock in ms when it offers, when the message was stored that was answered, or when it was taken what it
--            puts back, in Unix ms; and the length of a lease in ms 6
--   ARGV[3]  for each limit id 2, p of the units of its leased bucket 5, 1 if it is lenient 1, what of the whole comes back in a ms 7, and the amount 7, in these units
--   ARGV[4]  what home has answered: status 1, holders 2, and if booked what is given of each limit, see exchange.lua; else empty
--
-- Record, a string, big endian: version 1 byte: 1, limits 1, the shard 8, the instance that exchanged last 8, 1 if an exchange is under way 1, 1 if others are
-- short 1, holders 2, ms between two exchanges 2, ms until more is asked for again 2, number of the exchange 6, end of the lease 6, time of the levels 6, until when somebody
-- is about to exchange 6, when the last message was stored 6, the clock of who did 6, the time of the shard as home is told it 6, since when
-- it is counted what it is asked for 6, until when home decides 6; and for each limit id 2, p 5, thousandths of a unit 2, capacity 7, rate 7, level 7, what it was asked for 7, the largest amount 7,
-- the largest that it did not have 7, what only home can have 7, what home had left 7, what it keeps at its next exchange of capacity, rate and level 7 each, the
-- demand that home knows 7, that before 7, and what the message under way gives back of capacity, rate and level 7 each, and says of level, want,
-- largest and wanted 7 each.
--
-- Reply, a string, big endian: outcome 1 byte (0 too late, 1 done, 2 it was put back before), now in Unix ms 6; status 1: 0 done, 1 too little, 2 it holds nothing, 3 home
-- decides, 4 nothing to do. Of a take besides 1 if the caller is to exchange 1, the shard 8, number 6, and of each limit 1 if it is short 1, level 7, capacity 7,
-- rate 7, what home had left 7. Of an offer 1 if anything was asked for 1, the shard 8, number 6, ms until the next 6, time of the shard 6, and the numbers of
-- each limit as in an exchange, 7 each. Of an answer ms until the next 6.
--
-- TIME may step. Who calls knows what it says at least: if it says less, the shard forgets what it holds. Who knows nothing takes only where
-- somebody was there a moment ago, or after an exchange.
--
-- Expiry: the record a minute after a lease that began with the last exchange; the marker after that of a receipt.
--
-- Takes: now, extra, read, pack
-- Declares: floor, min, max, byte, instance, name, known, known_number, least, ticking, length, limits, stored, text, s, moment, same, blind, drop, record,
--   refill, status_reply, is_due, take, offer_part, offer, gain, put, put_back

local floor, min, max, byte = math.floor, math.min, math.max, string.byte
local instance, name, known, known_number, least, ticking, length = read(SHARD_CALL_FORMAT, ARGV[2])
local limits = {}
for at = 1, #ARGV[3], SHARD_LIMIT_SIZE do
  local l = {}
  l.id, l.unit, l.lenient, l.whole, l.amount = read(SHARD_LIMIT_FORMAT, ARGV[3], at)
  limits[#limits + 1] = l
end
local stored = redis.call('GET', KEYS[1])
local text = stored
local s = {parts = {}}
if text then
  if #text < SHARD_HEAD or byte(text) ~= SHARD_VERSION or #text ~= SHARD_HEAD + byte(text, 2) * SHARD_SIZE then
    error('a shard of another version')
  end
  local _
  _, _, s.holder, s.by, s.pending, s.contended, s.holders, s.interval, s.gap, s.number, s.deadline, s.updated, s.claimed, s.began, s.clock,
    s.ticks, s.counted, s.barred = read(SHARD_FORMAT, text)
  for i = 1, byte(text, 2) do
    local p = {}
    p.id, p.unit, p.carry, p.capacity, p.rate, p.level, p.since, p.largest, p.missed, p.wanted, p.left, p.keep_capacity, p.keep_rate, p.keep_level,
      p.told, p.before, p.gives_capacity, p.gives_rate, p.gives_level, p.has, p.want, p.biggest, p.wants =
      read(SHARD_PART_FORMAT, text, SHARD_HEAD + (i - 1) * SHARD_SIZE + 1)
    s.parts[i] = p
  end
end
local moment = now
local same = text and #s.parts == #limits
for i = 1, #limits do
  same = same and s.parts[i].id == limits[i].id and s.parts[i].unit == limits[i].unit
end

-- Forgets what the shard holds: it begins anew, under another name.
local function drop()
  s.holder, s.number, s.pending, s.deadline, s.claimed, s.contended = name, 0, 0, 0, 0, 0
  s.updated, s.began, s.interval, s.gap = moment, moment, SHARD_QUICK, SHARD_SHORTEST
  if s.counted == 0 or s.counted > moment then
    s.counted = moment
  end
  for i = 1, #s.parts do
    local p = s.parts[i]
    p.capacity, p.rate, p.level, p.carry, p.left = 0, 0, 0, 0, 0
    p.keep_capacity, p.keep_rate, p.keep_level, p.gives_capacity, p.gives_rate, p.gives_level = 0, 0, 0, 0, 0, 0
  end
end

-- Stores the record.
local function record()
  local all = pack(SHARD_FORMAT, SHARD_VERSION, #s.parts, s.holder, s.by, s.pending, s.contended, s.holders, s.interval, s.gap, s.number, s.deadline,
    s.updated, s.claimed, s.began, s.clock, s.ticks, s.counted, s.barred)
  for i = 1, #s.parts do
    local p = s.parts[i]
    all = all .. pack(SHARD_PART_FORMAT, p.id, p.unit, p.carry, p.capacity, p.rate, p.level, p.since, p.largest, p.missed, p.wanted, p.left,
      p.keep_capacity, p.keep_rate, p.keep_level, p.told, p.before, p.gives_capacity, p.gives_rate, p.gives_level, p.has, p.want, p.biggest, p.wants)
  end
  if extra == SHARD_TAKE and stored and #stored == #all then
    -- It leaves the expiry as it is.
    redis.call('SETRANGE', KEYS[1], '0', all)
  else
    redis.call('SET', KEYS[1], all, 'PXAT', now + length + SHARD_LIFE)
  end
end

-- Brings the levels to the time.
local function refill()
  local elapsed = moment - s.updated
  if elapsed == 0 then
    return
  end
  s.updated = moment
  for i = 1, #s.parts do
    local p = s.parts[i]
    local missing, come = p.capacity - p.level, min(p.rate * elapsed, EXACT)
    if missing > 0 then
      local part = come % LEASE_DRIFT
      local rest = part * (LEASE_DRIFT - 1) + p.carry
      -- Of each millisecond a thousandth does not count.
      if come < 2 * missing + 2 * p.rate then
        p.level, p.carry = p.level + (come - part) / LEASE_DRIFT * (LEASE_DRIFT - 1) + floor(rest / LEASE_DRIFT), rest % LEASE_DRIFT
      end
      if come >= 2 * missing + 2 * p.rate or p.level >= p.capacity then
        p.level, p.carry = p.capacity, 0
      end
    end
  end
end

-- A reply that says no more than a status.
local function status_reply(status)
  return pack(SHARD_REPLY_FORMAT, APPLIED, now, status)
end

-- Whether an exchange is due.
local function is_due(alive, status)
  if s.pending == 1 or not alive then
    return true
  elseif status == SHARD_SHORT then
    return moment >= s.began + s.gap
  elseif s.by ~= instance then
    return moment >= s.began + s.interval + SHARD_CLAIM
  end
  return moment >= s.began + s.interval
end

-- Takes the amounts, all or none. Limits that are lenient and have too little are left as they are.
local function take(blind)
  local status, due, short = SHARD_DONE, 0, {}
  if not blind then
    refill()
  end
  for i = 1, #limits do
    local p, n = s.parts[i], limits[i].amount
    p.since, p.largest, short[i] = min(p.since + n, EXACT), max(p.largest, n), 0
    if p.level < n then
      p.missed, short[i] = max(p.missed, n), 1
      if limits[i].lenient == 0 then
        status = SHARD_SHORT
        if n > p.capacity and p.left < n then
          p.wanted = max(p.wanted, n)
        end
      end
    end
  end
  local alive = not blind and moment < s.deadline
  if moment < s.barred then
    status = SHARD_OTHER
  elseif not alive then
    status = SHARD_ENDED
  elseif status == SHARD_DONE then
    for i = 1, #limits do
      if short[i] == 0 then
        s.parts[i].level = s.parts[i].level - limits[i].amount
      end
    end
  end
  if moment >= s.claimed and moment >= s.barred and is_due(alive, status) then
    due, s.claimed = 1, moment + SHARD_CLAIM
  end
  local reply = status_reply(status) .. pack(SHARD_TAKEN_FORMAT, due, s.holder, s.number)
  for i = 1, #limits do
    local p = s.parts[i]
    reply = reply .. pack(SHARD_LEVEL_FORMAT, short[i], p.level, p.capacity, p.rate, p.left)
  end
  record()
  return reply
end

-- What an exchange says of a limit.
local function offer_part(p, elapsed, first)
  if first or elapsed >= SHARD_CLAIM then
    local demand = min(floor(p.since / max(elapsed, SHARD_CLAIM)), MOST_SHARD_DEMAND)
    p.before = p.told
    if p.told == 0 or 10 * demand < 6 * p.told or 10 * demand > 14 * p.told then
      p.told = demand
    else
      p.told = floor((p.told + demand) / 2)
    end
    p.since = 0
  end
  local capacity, rate = min(p.capacity, p.keep_capacity), min(p.rate, p.keep_rate)
  local level = min(p.level, capacity, p.keep_level)
  p.gives_capacity, p.gives_rate, p.gives_level = p.capacity - capacity, p.rate - rate, p.level - level
  p.capacity, p.rate, p.level = capacity, rate, level
  p.has, p.biggest, p.wants = level, p.largest, p.wanted
  p.want = max(0, max(floor(p.told * 11 / 10) - rate, -MOST_SHARD_DEMAND) * s.interval + 2 * p.largest - level)
  if p.missed > 0 then
    p.want = max(p.want, p.missed - level + p.largest)
  end
  p.missed, p.wanted = 0, 0
  p.largest = p.largest - floor(p.largest / 4)
end

-- Begins an exchange: what the shard gives back it has no longer, and what it says is stored. One that is under way it repeats.
local function offer(blind)
  if moment < s.barred then
    return status_reply(SHARD_OTHER)
  elseif extra == SHARD_BEAT and (s.by ~= instance or moment < s.claimed or s.pending == 0 and moment < s.began + s.interval) then
    return status_reply(SHARD_AWAY)
  end
  if moment >= s.deadline and (s.number > 1 or s.number == 1 and s.pending == 0) then
    drop()
  end
  refill()
  if blind then
    -- Nobody knows how long it was. What it has counts again when home has answered.
    s.deadline = 0
  end
  local asked = 0
  if s.pending == 0 then
    local elapsed, first = moment - s.counted, s.number == 0
    for i = 1, #s.parts do
      if s.parts[i].since > 0 then
        asked = 1
      end
      offer_part(s.parts[i], elapsed, first)
    end
    if first or elapsed >= SHARD_CLAIM then
      s.counted = moment
    end
    s.number, s.pending = s.number + 1, 1
  end
  if s.by == instance then
    -- A message that comes late tells nothing: what passed since has been added.
    ticking = max(ticking, s.clock)
    s.ticks = s.ticks + ticking - s.clock
  end
  s.by, s.clock, s.began, s.claimed = instance, ticking, moment, moment + SHARD_CLAIM
  local reply = status_reply(SHARD_DONE) .. pack(SHARD_OFFERED_FORMAT, asked, s.holder, s.number, s.interval, s.ticks)
  for i = 1, #s.parts do
    local p = s.parts[i]
    reply = reply .. pack(SHARD_OFFER_FORMAT, p.gives_capacity, p.gives_rate, p.gives_level, p.told, p.has, p.want, p.biggest, p.wants)
  end
  record()
  return reply
end

-- Puts in what home has given. ticking is when the message was stored that it has answered.
local function gain(holders)
  s.pending, s.holders, s.claimed, s.contended = 0, holders, 0, 0
  s.deadline = max(s.deadline, ticking + length - floor((length + LEASE_DRIFT - 1) / LEASE_DRIFT) - 1)
  local all = {}
  for i = 1, #s.parts do
    local g, _ = {}, nil
    g.capacity, g.rate, g.level, g.due_capacity, g.due_rate, g.left, _, g.contended = read(GIVEN_FORMAT, ARGV[4], SHARD_ANSWER + (i - 1) * GIVEN_SIZE + 1)
    s.contended = max(s.contended, g.contended == 1 and 1 or 0)
    all[i] = g
  end
  local changed, gained = s.contended == 1, false
  for i = 1, #s.parts do
    local p, g = s.parts[i], all[i]
    p.capacity, p.rate = min(p.capacity + g.capacity, MOST_SHARD_UNITS), min(p.rate + g.rate, MOST_SHARD_RATE)
    p.level, p.left = min(p.level + g.level, p.capacity), g.left
    local keep = min(g.due_rate, floor(p.told * 1274 / 1000) + floor(limits[i].whole * 49 / (1000 * max(1, holders))))
    p.keep_capacity, p.keep_rate, p.keep_level = p.capacity, p.rate, MOST_SHARD_UNITS
    if p.rate > keep + floor(keep / 32) then
      p.keep_rate = keep
    end
    if p.capacity - g.due_capacity > floor(g.due_capacity / 32) then
      p.keep_capacity = g.due_capacity
    end
    if s.contended == 1 then
      p.keep_level = min(2 * p.told * s.interval + 2 * p.largest, MOST_SHARD_UNITS)
    end
    local noise = floor(math.sqrt(p.before * max(p.largest, p.unit) / s.interval))
    changed = changed or 10 * max(p.told - p.before, p.before - p.told) > 3 * p.before + 40 * noise
    gained = gained or p.want > 0 and 10 * g.level >= p.want
  end
  s.interval = changed and SHARD_QUICK or min(2 * s.interval, SHARD_INTERVAL)
  s.gap = gained and SHARD_SHORTEST or min(2 * s.gap, SHARD_INTERVAL)
end

-- Puts in what home has answered to the message that is under way.
local function put()
  local status, holders = read(SHARD_ANSWER_FORMAT, ARGV[4])
  if s.pending == 0 or s.holder ~= known or s.number ~= known_number then
    return status_reply(SHARD_AWAY)
  end
  refill()
  if status == EXCHANGED then
    gain(holders)
  else
    drop()
    if status ~= OLD_EXCHANGE and status ~= NOT_KNOWN then
      s.barred = moment + SHARD_BARRED
    end
  end
  record()
  return status_reply(SHARD_DONE) .. pack(DATE_FORMAT, s.interval)
end

-- Puts back what was taken at a time, once, less what has come back since, if the shard still holds what it was taken from.
local function put_back(blind)
  if redis.call('GET', KEYS[2]) or moment - ticking >= MARKER_LIFE then
    return pack(REPLY_FORMAT, NOT_APPLIED, now)
  end
  redis.call('SET', KEYS[2], '', 'PXAT', now + MARKER_LIFE)
  if s.holder == known and moment < s.deadline and not blind then
    refill()
    local elapsed = max(0, moment - ticking)
    for i = 1, #s.parts do
      -- The rate has not been more since, if the number is that of then: it becomes less with another number only.
      local p = s.parts[i]
      local rate = s.number == known_number and p.rate or limits[i].whole
      p.level = min(p.capacity, p.level + max(0, limits[i].amount - min(elapsed * max(1, rate), EXACT)))
    end
    record()
  end
  return pack(REPLY_FORMAT, APPLIED, now)
end

if s.holder ~= known then
  -- What the caller knows of another one says nothing of this one.
  least = 0
end
if not same and stored and moment < max(s.deadline, s.began + length) then
  if extra == SHARD_PUT_BACK then
    -- What was taken is not held any more. It is settled all the same, once.
    return put_back(true)
  end
  return status_reply(SHARD_OTHER)
elseif not same then
  s = {
    parts = {}, by = NO_HOLDER, holders = 0, clock = 0, ticks = 0, counted = 0, barred = 0,
  }
  for i = 1, #limits do
    s.parts[i] = {
      id = limits[i].id, unit = limits[i].unit, since = 0, largest = 0, missed = 0, wanted = 0, told = 0, before = 0, has = 0, want = 0, biggest = 0, wants = 0,
    }
  end
  drop()
elseif max(s.updated, least) - moment > LEASE_STEP or s.holder == known and s.number < known_number then
  drop()
  -- That stays so whatever the call comes to: the next caller may know less.
  record()
end
moment = max(now, s.updated)
local blind = least == 0 and s.number > 0 and moment - s.updated > LEASE_STEP
if extra == SHARD_TAKE then
  return take(blind)
elseif extra == SHARD_PUT then
  return put()
elseif extra == SHARD_PUT_BACK then
  return put_back(blind)
end
return offer(blind)
