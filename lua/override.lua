-- override.lua: reads or changes the override records of a tenant.
--
-- The records, a string, big endian:
--   generation  8 bytes: version 1 byte: 1, and 7 random ones, others after each change
--   and records in the order of their changes:
--   size        2 bytes, of what follows
--   id          length 2, and what addresses the record: level 1 (and 128 if it has a part), length
--               of the name of the owner 2, that name, length of its part 2 and that part if it has one,
--               name of the limit or nothing
--   expires     6 bytes, Unix ms, 0 = never
--   set         6 bytes, Unix ms
--   flags       1 byte: 1 unlimited, 2 blocked
--   mode        1 byte: 0 none, 1 enforce, 2 warn, 3 shadow, 4 off
--   numbers     capacity 7, refill 7, period in ms 6, each 0 = none
--   texts       length of the reason 2, the reason, the actor
--
-- KEYS:
--   KEYS[1]  the records
-- ARGV:
--   ARGV[1]  numbers, see clock.lua: extra is how many records there may be
--   ARGV[2]  generation after the change, or empty: nothing is changed
--   ARGV[3]  id of the record to change, or empty: all are removed
--   ARGV[4]  the record from expires on, without set, or empty: it is removed
--
-- Reply, a string, big endian: outcome 1 byte (0 too late, 1 done, 2 there is no room, 3 the record has
-- expired already), now in Unix ms 6, and the records as they were before.
--
-- Expiry: when the last record has expired.
--
-- Takes: now, extra, read, pack
-- Declares: sub, records, clears, reply, kept, last, forever, keep, at, text

local sub = string.sub
local records = redis.call('GET', KEYS[1]) or ''
-- Whoever removes all need not know what.
local clears = ARGV[2] ~= '' and ARGV[3] == ''
if records ~= '' and string.byte(records) ~= OVERRIDES_VERSION and not clears then
  error('override records of version ' .. string.byte(records))
end
local reply = pack(REPLY_FORMAT, APPLIED, now) .. records
if ARGV[2] == '' then
  return reply
end
if ARGV[4] ~= '' then
  local expires = read(DATE_FORMAT, ARGV[4])
  if expires > 0 and expires <= now then
    return pack(REPLY_FORMAT, EXPIRED, now)
  end
end

local kept, last, forever = {ARGV[2]}, 0, false
local function keep(record, expires)
  kept[#kept + 1] = record
  last = math.max(last, expires)
  forever = forever or expires == 0
end

local at = GENERATION_SIZE + 1
while ARGV[3] ~= '' and at <= #records do
  local size, id, expires = read(OVERRIDE_FORMAT, records, at)
  if id ~= ARGV[3] and (expires == 0 or expires > now) then
    keep(sub(records, at, at + 1 + size), expires)
  end
  at = at + 2 + size
end
if ARGV[4] ~= '' then
  local record = pack(LENGTH_FORMAT, #ARGV[3]) .. ARGV[3] .. sub(ARGV[4], 1, 6) .. pack(DATE_FORMAT, now) .. sub(ARGV[4], 7)
  keep(pack(LENGTH_FORMAT, #record) .. record, (read(DATE_FORMAT, ARGV[4])))
end

local text = table.concat(kept)
if ARGV[4] ~= '' and (#kept - 1 > extra or #text > MAX_OVERRIDE_BYTES) then
  return pack(REPLY_FORMAT, NOT_APPLIED, now)
elseif #kept == 1 or not forever and last <= now then
  redis.call('DEL', KEYS[1])
elseif forever then
  redis.call('SET', KEYS[1], text)
else
  redis.call('SET', KEYS[1], text, 'PXAT', last)
end
return reply
