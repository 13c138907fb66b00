-- Returns a page of what was told, without what is longer than an instance writes.
-- KEYS 1 the hash or set
-- ARGV 1 SSCAN or HSCAN, 2 the cursor, 3 about how many, 4 and 5 how long a name and a value may be
-- Reply: the next cursor, of a hash what stands under its mark, and the names, of a hash with values.
local names, values = tonumber(ARGV[4]), tonumber(ARGV[5])
local found = redis.call(ARGV[1], KEYS[1], ARGV[2], 'COUNT', ARGV[3])
local page, all, step = {found[1]}, found[2], 1
if ARGV[1] == 'HSCAN' then
  step = 2
  page[2] = redis.call('HGET', KEYS[1], '#') or ''
  if #page[2] > names then page[2] = '' end
end
for i = 1, #all, step do
  if #all[i] <= names and (step == 1 or #all[i + 1] <= values) then
    for j = i, i + step - 1 do page[#page + 1] = all[j] end
  end
end
return page
