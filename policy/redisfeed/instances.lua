-- Lists the instances that were seen of late.
-- KEYS 1 what the instances say, 2 when each was seen
-- ARGV 1 after how many ms an instance is forgotten
-- Reply: of each instance its name, when it was seen, and what it says.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local seen = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. (now - ARGV[1]), '+inf', 'WITHSCORES')
local reply = {}
for i = 1, #seen, 2 do
  reply[#reply + 1] = seen[i]
  reply[#reply + 1] = seen[i + 1]
  reply[#reply + 1] = redis.call('HGET', KEYS[1], seen[i]) or ''
end
return reply
