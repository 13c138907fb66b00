-- Sets a switch, in the place of one of the same scope, and says so to subscribers.
-- KEYS 1 the switches
-- ARGV 1 the scope, 2 the switch, 3 its end in ms, 4 a stamp, 5 the channel, 6 how many there may be, 7 for how many ms one may hold
-- Reply: 1, 0 if it has ended or ends too late, or -1 if there are too many; and the time in ms.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local left = tonumber(ARGV[3]) - now
if left <= 0 or left > tonumber(ARGV[7]) then return {0, now} end
local there = redis.call('HKEYS', KEYS[1])
local count = 0
for _, field in ipairs(there) do
  if string.sub(field, 1, 2) == 's:' and field ~= ARGV[1] then
    local ends = tonumber(string.match(redis.call('HGET', KEYS[1], field), '^%d+') or '0')
    if ends <= now then redis.call('HDEL', KEYS[1], field) else count = count + 1 end
  end
end
if count >= tonumber(ARGV[6]) then return {-1, now} end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3] .. ' ' .. ARGV[2], 'stamp', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[7] * 2)
redis.call('PUBLISH', ARGV[5], ARGV[4])
return {1, now}
