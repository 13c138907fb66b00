-- renew.lua: extends the lease of a claim.
--
-- KEYS:
--   KEYS[1]  record of the idempotency key, see take.lua
-- ARGV:
--   ARGV[1]  numbers, see clock.lua: extra is the lease in ms, from now on
--   ARGV[2]  attempt, 16 bytes
--
-- Reply, a string, big endian: outcome 1 byte (0 too late, 1 renewed, 2 the attempt does not hold
-- the claim), now in Unix ms 6.
--
-- Expiry: the record keeps its own.
--
-- Takes: now, extra, read, pack
-- Declares: record

local record = redis.call('GET', KEYS[1])
if record then
  local version, state, _, finish, holder = read(HOLDER_FORMAT, record)
  if version == RECORD_VERSION and state == RUNNING and finish > now and holder == ARGV[2] then
    redis.call('SETRANGE', KEYS[1], 2, pack(DATE_FORMAT, now + extra))
    return pack(REPLY_FORMAT, APPLIED, now)
  end
end
return pack(REPLY_FORMAT, NOT_APPLIED, now)
