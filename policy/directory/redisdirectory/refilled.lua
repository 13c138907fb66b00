-- Makes the records that were kept the directory.
-- KEYS 1 the head, 2 the records, 3 the changes, 4 the records that were kept
-- ARGV 1 the origin, 2 how many records there are
-- Reply: 1, 0 if there is a directory, and 2 if some were lost.
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('DEL', KEYS[4])
  return 0
end
if redis.call('HLEN', KEYS[4]) ~= tonumber(ARGV[2]) then return 2 end
redis.call('RENAME', KEYS[4], KEYS[2])
redis.call('PERSIST', KEYS[2])
redis.call('DEL', KEYS[3])
-- All of them are changes 1, which nobody is told one by one.
redis.call('HSET', KEYS[1], 'origin', ARGV[1], 'revision', '1', 'floor', '1')
return 1
