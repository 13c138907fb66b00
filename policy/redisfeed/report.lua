-- Keeps what an instance says of itself. Those who have said nothing for long are forgotten when another one comes.
-- KEYS 1 what the instances say, 2 when each was seen
-- ARGV 1 the instance, 2 what it says, 3 after how many ms it is forgotten, 4 how many instances there may be
-- Reply: 1, or 0 if there are too many.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function forget(from, to)
  for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], from, to, 'LIMIT', 0, 1000)) do
    redis.call('ZREM', KEYS[2], gone)
    redis.call('HDEL', KEYS[1], gone)
  end
end
if redis.call('ZADD', KEYS[2], now, ARGV[1]) == 1 then
  -- Who comes takes away those who have gone.
  forget('-inf', now - ARGV[3])
  -- Nobody was seen in the future: the clock was set back, or somebody else has written it.
  forget('(' .. (now + ARGV[3]), '+inf')
  if redis.call('ZCARD', KEYS[2]) > tonumber(ARGV[4]) then
    redis.call('ZREM', KEYS[2], ARGV[1])
    return 0
  end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return 1
