-- Lists the instances that were seen of late.
-- KEYS 1 what the instances say, 2 when each was seen
-- ARGV 1 after how many ms an instance is forgotten, 2 how many are listed, 3 the most bytes of a name, 4 those of what one says, 5 those
-- of all that they say
-- Reply: of each instance its name, cut to one byte more than fits, when it was seen, and what it says: nothing if that does not fit.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local seen = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. (now - ARGV[1]), now + ARGV[1], 'WITHSCORES', 'LIMIT', 0, ARGV[2])
local reply, left = {}, tonumber(ARGV[5])
for i = 1, #seen, 2 do
  local size = redis.call('HSTRLEN', KEYS[1], seen[i])
  local report = ''
  if size <= tonumber(ARGV[4]) and size <= left then
    report = redis.call('HGET', KEYS[1], seen[i]) or ''
    left = left - size
  end
  reply[#reply + 1] = string.sub(seen[i], 1, ARGV[3] + 1)
  reply[#reply + 1] = seen[i + 1]
  reply[#reply + 1] = report
end
return reply
