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

local record = redis.call('GET', KEYS[1])
if record then
  local version, state, _, finish, holder = read('>BBI6I6c16', record)
  if version == 1 and state == 1 and finish > now and holder == ARGV[2] then
    redis.call('SETRANGE', KEYS[1], 2, pack('>I6', now + extra))
    return pack('>BI6', 1, now)
  end
end
return pack('>BI6', 2, now)
