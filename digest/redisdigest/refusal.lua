-- Returns a refusal of a run.
-- KEYS 1 its refusals
-- ARGV 1 the id, 2 the most bytes
-- Reply: the refusal, - if it is too large, nothing if there is none.
local size = redis.call('HSTRLEN', KEYS[1], ARGV[1])
if size == 0 then return false end
if size > tonumber(ARGV[2]) then return '-' end
return redis.call('HGET', KEYS[1], ARGV[1])
