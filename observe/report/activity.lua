-- Reads a part of a stream of activity, the oldest entry first.
--
-- KEYS[1]  the stream
-- ARGV     the id of the entry to begin with, how many entries are read, how large the text of one may be
--
-- Reply: of each entry its id and its text, which is empty if it is too large or not there.
local reply = {}
local entries = redis.call('XRANGE', KEYS[1], ARGV[1], '+', 'COUNT', ARGV[2])
for i = 1, #entries do
  local fields = entries[i][2]
  local text = ''
  for f = 1, #fields, 2 do
    if fields[f] == 'activity' and #fields[f + 1] <= tonumber(ARGV[3]) then text = fields[f + 1] end
  end
  reply[2 * i - 1] = entries[i][1]
  reply[2 * i] = text
end
return reply
