-- Puts a revision in the place of an older one, and says so to subscribers.
-- KEYS 1 the revision
-- ARGV 1 the number that it has to replace, empty for any; 2 number, 3 hash, 4 document, 5 author, 6 reason, 7 time, 8 signature;
-- 9 the channel
-- Reply: 1 if it is there now, else 0 with number and hash of the one that is.
local head = redis.call('HMGET', KEYS[1], 'number', 'hash')
local there = tonumber(head[1] or '0') or 0
if head[1] == ARGV[2] and head[2] == ARGV[3] then return {1} end
if ARGV[1] ~= '' and tonumber(ARGV[1]) ~= there or tonumber(ARGV[2]) <= there then
  return {0, string.format('%.0f', there), string.sub(head[2] or '', 1, 128)}
end
-- Nothing of another revision stays beside it, its marker above all.
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'is:' .. ARGV[2] .. ':' .. ARGV[3], '', 'number', ARGV[2], 'hash', ARGV[3], 'document', ARGV[4],
  'author', ARGV[5], 'reason', ARGV[6], 'published', ARGV[7], 'signature', ARGV[8])
redis.call('PUBLISH', ARGV[9], ARGV[2])
return {1}
