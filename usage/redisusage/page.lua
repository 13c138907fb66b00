-- Returns a page of a hash, without what is longer than an instance writes.
-- KEYS 1 the hash
-- ARGV 1 the cursor, 2 about how many, 3 and 4 how long a name and a value may be
-- Reply: the next cursor, then names and values.
local names, values = tonumber(ARGV[3]), tonumber(ARGV[4])
local found = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
local page, all = {found[1]}, found[2]
for i = 1, #all, 2 do
  if #all[i] <= names and #all[i + 1] <= values then
    page[#page + 1] = all[i]
    page[#page + 1] = all[i + 1]
  end
end
return page
