-- Writes or removes the record of a tenant.
-- KEYS 1 the head, 2 the records, 3 the changes
-- ARGV 1 the tenant, 2 the document, empty for none, 3 the revision of the record that it replaces, 0 for none, 4 the origin
-- if this is the first one, 5 how many changes are remembered
-- Reply: 1 and the revision, or 0 and the revision of the record that is there instead.
local record = redis.call('HGET', KEYS[2], ARGV[1]) or ''
local there = string.match(record, '^(%d+):') or '0'
local written = redis.call('EXISTS', KEYS[1]) == 1
if written and string.sub(record, #there + 2) == ARGV[2] then return {'1', there} end
if there ~= ARGV[3] then return {'0', there} end
if not written then redis.call('HSET', KEYS[1], 'origin', ARGV[4], 'revision', '0', 'floor', '0') end
redis.call('HINCRBY', KEYS[1], 'revision', 1)
local revision = redis.call('HGET', KEYS[1], 'revision')
if ARGV[2] == '' then
  redis.call('HDEL', KEYS[2], ARGV[1])
else
  redis.call('HSET', KEYS[2], ARGV[1], revision .. ':' .. ARGV[2])
end
redis.call('ZADD', KEYS[3], revision, ARGV[1])
local over = redis.call('ZCARD', KEYS[3]) - tonumber(ARGV[5])
if over > 0 then
  redis.call('HSET', KEYS[1], 'floor', redis.call('ZRANGE', KEYS[3], over - 1, over - 1, 'WITHSCORES')[2])
  redis.call('ZREMRANGEBYRANK', KEYS[3], 0, over - 1)
end
return {'1', revision}
