-- Returns the switches.
-- KEYS 1 the switches
-- ARGV 1 the stamp that the caller has, 2 how many fields there may be, 3 the most bytes of a field and of a switch
-- Reply: the time in ms and the stamp; nothing more if the caller has it, or there is no stamp, and otherwise scopes and switches. A switch that
-- is too large is empty; where there are too many fields the second is a minus.
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local fields = redis.call('HLEN', KEYS[1])
if fields > tonumber(ARGV[2]) then return {now, '-'} end
local most = tonumber(ARGV[3])
local stamp = redis.call('HGET', KEYS[1], 'stamp') or ''
if #stamp > most then return {now, '-'} end
local reply = {now, stamp}
if stamp == ARGV[1] or stamp == '' then return reply end
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if field ~= 'stamp' then
    local large = #field > most or redis.call('HSTRLEN', KEYS[1], field) > most
    reply[#reply + 1] = string.sub(field, 1, most)
    reply[#reply + 1] = large and '' or redis.call('HGET', KEYS[1], field)
  end
end
return reply
