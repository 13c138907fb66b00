-- clock.lua: the time, and whether the caller still waits. It stands first in each script.
--
-- Names in capitals are the numbers and formats of the wire: internal/state/names.go has them, and they become
-- literals where the scripts are put together.
--
-- ARGV[1], little endian doubles:
--   before   Unix ms after which the caller no longer waits and nothing is done, 0 = none
--   extra    a number whose meaning the script says
--   known, since, till   the override records that the caller knows: their generation, and the dates in
--            Unix ms between which the same of them hold, see known_overrides.lua
--   and for each owner in turn the numbers of its limits, and the windows of its calendar, see state.lua
--
-- Takes: nothing
-- Declares: read, pack, rep, clock, micro, now, before, extra

local read, pack, rep = struct.unpack, struct.pack, string.rep
local clock = redis.call('TIME')
local micro = clock[2] + 0
local now = clock[1] * 1000 + (micro - micro % 1000) / 1000
local before, extra = read(HEAD_FORMAT, ARGV[1])
if before > 0 and now > before then
  return pack(REPLY_FORMAT, LATE, now)
end
