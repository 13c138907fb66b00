-- Keeps records for a directory that has none, where nobody reads them yet.
-- KEYS 1 the head, 2 the records that are kept so
-- ARGV 1 for how many ms they are kept, and of each record tenant and document
-- Reply: 1, or 0 if there is a directory.
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
for i = 2, #ARGV, 2 do
  redis.call('HSET', KEYS[2], ARGV[i], '1:' .. ARGV[i + 1])
end
redis.call('PEXPIRE', KEYS[2], ARGV[1])
return 1
