-- Returns the newest revision.
-- KEYS 1 the revision
-- ARGV 1 number and 2 hash of the one that the caller has, 3 the most bytes of a document, 4 those of anything else,
-- 5 the SHA-1 of all but the document of the one that was read last, empty for none
-- Reply: nothing if there is none; its number alone if the caller has it; number and hash, which may be cut, if it is too large;
-- number, hash and SHA-1 if it is the one that was read last; number, hash, document, author, reason, time and signature
-- otherwise.
local head = redis.call('HMGET', KEYS[1], 'number', 'hash')
if not head[1] then return {} end
local most = tonumber(ARGV[4])
if head[1] == ARGV[1] and head[2] == ARGV[2] then return {string.sub(head[1], 1, most)} end
local large = redis.call('HSTRLEN', KEYS[1], 'document') > tonumber(ARGV[3])
for _, field in ipairs({'number', 'hash', 'author', 'reason', 'published', 'signature'}) do
  large = large or redis.call('HSTRLEN', KEYS[1], field) > most
end
if large then return {string.sub(head[1], 1, most), string.sub(head[2] or '', 1, most)} end
local beside = redis.call('HMGET', KEYS[1], 'number', 'hash', 'author', 'reason', 'published', 'signature')
for i = 1, 6 do beside[i] = beside[i] or '' end
if ARGV[5] ~= '' and redis.sha1hex(table.concat(beside, '\0')) == ARGV[5] then return {head[1], head[2], ARGV[5]} end
local reply = redis.call('HMGET', KEYS[1], 'number', 'hash', 'document', 'author', 'reason', 'published', 'signature')
for i = 1, 7 do reply[i] = reply[i] or '' end
return reply
