-- Returns the record of a tenant.
-- KEYS 1 the head, 2 the records
-- ARGV 1 the tenant, 2 the most bytes of a document
-- Reply: nothing if nothing was ever written; one part if the tenant has no record; revision and document. A document
-- that is too large is cut, and no document then.
if redis.call('EXISTS', KEYS[1]) == 0 then return {} end
if redis.call('HSTRLEN', KEYS[2], ARGV[1]) > tonumber(ARGV[2]) + 32 then return {'1', '['} end
local record = redis.call('HGET', KEYS[2], ARGV[1])
if not record then return {''} end
local at = string.find(record, ':', 1, true) or 0
return {string.sub(record, 1, at - 1), string.sub(record, at + 1)}
