-- Returns some of the records of a run.
-- KEYS 1 its records
-- ARGV 1 the first and 2 the last part, 3 the most bytes of a part
-- Reply: the parts. One that is too large is empty.
local parts = redis.call('LRANGE', KEYS[1], ARGV[1], ARGV[2])
for i = 1, #parts do
  if #parts[i] > tonumber(ARGV[3]) then parts[i] = '' end
end
return parts
