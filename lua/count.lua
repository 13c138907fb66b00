-- count.lua: counts usage in the step that charges it. It stands before claim.lua and settle.lua, which count with it what
-- they admit or correct. The caller adds COUNTED times the number of the keys of the counts to extra, and these are the plain
-- KEYS, before that of the override records:
--   the first   points and requests of the tenant in an hour
--   the others  another unit each, or a root field, in the same hour
--
-- Value of such a key, a string, of which the end may be missing. Its numbers are big endian doubles, which only grow, two for each
-- minute of the hour: of the first key points and requests, of a unit its amount and nothing, of a root field points and calls.
--   mark   8 bytes: version 1 byte: 1, and 7 random ones, which tell the value from every other one under its key
--   back   60 times 16 bytes: what was given back, of what was charged in that minute
--   room   32 bytes of nothing, so that all places from here on have four digits
--   count  60 times 16 bytes: what was charged
--   names  of the first key: that of the tenant, if its key does not tell it, and of each other key, when it was made:
--          kind 1 byte: 0 tenant, 1 unit, 2 root field; length 2, name
--
-- An argument for each of these keys follows the rules of the owners:
--   numbers  four little endian doubles: what was charged and what was given back
--   of the first key  date in Unix ms 6, of a take the beginning of the hour, and of a settlement any in the minute that it
--                     is about; mark 8, and the name of the tenant, as above, or nothing
--   of the others     their name, as above
--
-- Expiry: 48 h after the hour, or after the key was made if that is later.
--
-- Takes: now, extra, read, pack
-- Declares: counted, plain, hour, tally

-- plain is how many keys there are that are not of a count. Nothing is a function or a table that need not be one: each would
-- take as long as a tenth of what counting takes.
local counted, plain, hour, tally = 0, #KEYS, nil, nil
if extra >= COUNTED then
  counted = (extra - extra % COUNTED) / COUNTED
  extra, plain = extra % COUNTED, plain - counted

  -- Counts under all keys, in the minute of a date. The first argument stands at a place.
  tally = function(at, date)
    local sub, past = string.sub, date - hour
    local minute = (past - past % MINUTE) / MINUTE
    -- To make a number a string takes as long as half a command. One byte more than it needs is read.
    local from, to = sub(COUNT_PLACES, 4 * minute + 1, 4 * minute + 4), sub(COUNT_PLACES, 4 * minute + 5, 4 * minute + 8)
    for i = 1, counted do
      local key, numbers = KEYS[plain + i], ARGV[at + i - 1]
      local a, b, back, rest = read(COUNTS_FORMAT, numbers)
      local was, x, y, room = redis.pcall('GETRANGE', key, from, to), 0, 0, true
      if was.err then
        -- Something that nobody wrote: what is charged by now has to be counted all the same.
        redis.call('DEL', key)
      elseif #was >= COUNT_SIZE then
        x, y = read(COUNT_FORMAT, was)
      end
      if x + y == 0 and redis.call('GETRANGE', key, '0', '0') == '' then
        local ends = hour + COUNT_HOUR
        local name, size = sub(numbers, i == 1 and COUNT_TENANT or COUNT_NAME), #(redis.call('GET', KEYS[plain + 1]) or '')
        if size < COUNT_NAMES then size = COUNT_NAMES end
        room = size + #name <= MOST_COUNT
        if room then
          redis.call('SET', key, sub(ARGV[at], COUNT_MARK, COUNT_TENANT - 1), 'PXAT', (ends > now and ends or now) + COUNT_LIFE)
          if name ~= '' then redis.call('SETRANGE', KEYS[plain + 1], size, name) end
        end
      end
      if room and a + b > 0 then
        a, b = a + x, b + y
        redis.call('SETRANGE', key, from, pack(COUNT_FORMAT, a < EXACT and a or EXACT, b < EXACT and b or EXACT))
      end
      if room and back + rest > 0 then
        local place = COUNT_BACK + COUNT_SIZE * minute
        was = redis.call('GETRANGE', key, place, place + COUNT_SIZE - 1)
        if #was == COUNT_SIZE then
          x, y = read(COUNT_FORMAT, was)
          back, rest = back + x, rest + y
        end
        redis.call('SETRANGE', key, place, pack(COUNT_FORMAT, back < EXACT and back or EXACT, rest < EXACT and rest or EXACT))
      end
    end
  end
end
