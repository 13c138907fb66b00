-- Leaves another witness in the place of the one that was left.
-- KEYS 1 the witness
-- ARGV 1 the one that was left, 2 the next one
-- Reply: 1, or 0 if the one that was left is not there.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
