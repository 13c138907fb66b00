-- Looks for a refusal in a part of a stream of denials, from the newest entry on.
--
-- KEYS[1]  the stream
-- ARGV     the id of the refusal, the id of the entry to begin with, how many entries are looked at, how large the data may be
--
-- Reply: the source and the data of the refusal; or the id of the entry to go on with; or nothing at the end.
local entries = redis.call('XREVRANGE', KEYS[1], ARGV[2], '-', 'COUNT', ARGV[3])
for i = 1, #entries do
  local fields = entries[i][2]
  local source, data = '', ''
  local found = false
  for f = 1, #fields, 2 do
    if fields[f] == 'id' and fields[f + 1] == ARGV[1] then found = true end
    if fields[f] == 'source' then source = fields[f + 1] end
    if fields[f] == 'data' then data = fields[f + 1] end
  end
  if found and #data <= tonumber(ARGV[4]) then return {source, data} end
end
if #entries < tonumber(ARGV[3]) then return {} end
return {'(' .. entries[#entries][1]}
