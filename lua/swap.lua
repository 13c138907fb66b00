-- swap.lua: tells what stands under keys, and puts something else there if all of it is what the caller knows. It moves tenants from one
-- store to another.
--
-- KEYS, all under one hash tag:
--   KEYS[i]      any
-- ARGV:
--   ARGV[1]      numbers, see clock.lua: extra is 1 to put something there, 0 only to be told
--   ARGV[2 * i]  what stands under KEYS[i] as the caller knows it: + and the value, - for nothing, or empty for anything
--   ARGV[2 * i + 1]  what is to stand there: + and when it expires in Unix ms 6, 0 for never, and the value; - for nothing, or empty
--                for what is there
--
-- Reply, a string, big endian: outcome 1 byte (0 too late, 1 done, 2 something else stands there), now in Unix ms 6, and of each key
-- what stood there before: its length and one 4, 0 for nothing, and the value.
--
-- Expiry: as the caller says.
--
-- Takes: now, extra, read, pack
-- Declares: values, same

local values, same = {}, true
for i = 1, #KEYS do
  local value = redis.call('GET', KEYS[i])
  values[i] = value and pack(SIZE_FORMAT, #value + 1) .. value or pack(SIZE_FORMAT, 0)
  same = same and (ARGV[2 * i] == '' or ARGV[2 * i] == (value and '+' .. value or '-'))
end
if same and extra == 1 then
  for i = 1, #KEYS do
    local text = ARGV[2 * i + 1]
    if text == '-' then
      redis.call('DEL', KEYS[i])
    elseif text ~= '' then
      local expiry = read(DATE_FORMAT, text, 2)
      if expiry == 0 then
        redis.call('SET', KEYS[i], string.sub(text, 8))
      else
        redis.call('SET', KEYS[i], string.sub(text, 8), 'PXAT', expiry)
      end
    end
  end
end
return pack(REPLY_FORMAT, same and APPLIED or NOT_APPLIED, now) .. table.concat(values)
