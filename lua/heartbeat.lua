-- heartbeat.lua: notes that an instance lives, and counts those that do.
--
-- KEYS:
--   KEYS[1]  the instances of the namespace
-- ARGV:
--   ARGV[1]  numbers, see clock.lua: extra is for how many ms an instance is believed to live
--   ARGV[2]  the instance, 8 bytes, of which those of one that can lease begin with LEASES
--
-- Value, a string, big endian: for each instance 8 bytes and when it was heard of, Unix ms 6; the one heard of
-- last stands last. There are at most 1001, of which those heard of longest ago are left out first.
--
-- Reply, a string, big endian: outcome 1 byte (0 too late, 1 noted), now in Unix ms 6, how many
-- instances live, this one included, 2, 1 byte: 1 if this one stood there before, 0 if not, as after a
-- loss of data; and how many of them can lease 2.
--
-- Expiry: when the last instance is no longer believed to live.
--
-- Takes: now, extra, read, pack
-- Declares: living, value, before, first, leasing

local living = {}
local value = redis.call('GET', KEYS[1]) or ''
local before = 0
for at = 1, #value - 13, 14 do
  local instance, heard = read(INSTANCE_FORMAT, value, at)
  -- What a clock that was set back has noted lies in the future.
  if heard > now - extra and heard <= now + extra then
    if instance == ARGV[2] then
      before = 1
    else
      living[#living + 1] = string.sub(value, at, at + 13)
    end
  end
end
living[#living + 1] = pack(INSTANCE_FORMAT, ARGV[2], now)
local first = math.max(1, #living - MAX_INSTANCES)
redis.call('SET', KEYS[1], table.concat(living, '', first), 'PX', extra)
local leasing = 0
for i = first, #living do
  if string.sub(living[i], 1, LEASES_SIZE) == LEASES then
    leasing = leasing + 1
  end
end
return pack(INSTANCES_FORMAT, APPLIED, now, #living - first + 1, before, leasing)
