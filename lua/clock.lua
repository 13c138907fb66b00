-- clock.lua: the time, and whether the caller still waits. It stands first in each script.
--
-- ARGV[1], little endian doubles:
--   before   Unix ms after which the caller no longer waits and nothing is done, 0 = none
--   extra    a number whose meaning the script says
--   known, since, till   the override records that the caller knows: their generation, and the dates in
--            Unix ms between which the same of them hold, see overrides.lua
--   and for each owner in turn the numbers of its limits, and the windows of its calendar, see state.lua

local read, pack, rep = struct.unpack, struct.pack, string.rep
local clock = redis.call('TIME')
local micro = clock[2] + 0
local now = clock[1] * 1000 + (micro - micro % 1000) / 1000
local before, extra = read('<dd', ARGV[1])
if before > 0 and now > before then
  return pack('>BI6', 0, now)
end
