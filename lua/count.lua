-- count.lua: counts usage in the step that charges it. It stands before claim.lua and settle.lua, which count with it what
-- they admit or correct. The caller adds COUNTED times the number of the keys of the counts to extra, and these are the plain
-- KEYS, before that of the override records:
--   the first   points and requests of the tenant in an hour
--   the others  another unit each, or a root field, in the same hour
--
-- Value of such a key, a string. Its numbers are big endian, 7 bytes each, which only grow, two for each minute of the hour: of the
-- first key points and requests, of a unit its amount and nothing, of a root field points and calls. It is made with all counts, and the
-- rest may be missing.
--   mark   8 bytes: version 1 byte: 2, and 7 random ones, which tell the value from every other one under its key
--   room   92 bytes of nothing, so that all places from here on have three digits, as far as they are of counts
--   count  60 times 14 bytes: what was charged
--   back   60 times 14 bytes: what was given back, of what was charged in that minute
--   names  of the first key: that of the tenant, if its key does not tell it, and of each other key, when it was made:
--          kind 1 byte: 0 tenant, 1 unit, 2 root field; length 2, name
-- What is too short for the count of a minute is none, as is a value of another type, and is made anew.
--
-- ARGV[1] ends with what is counted under the first key, in 48 bytes: what was given back, two little endian doubles, nothing by a take;
-- size of the name of the tenant 2, which stands before all this as above, after some bytes of nothing; mark 8; what was charged, two
-- doubles; date in Unix ms 6, of a take the beginning of the hour, and of a settlement any in the minute that it is about. So a take
-- reads the end alone, unless it makes a key.
-- An argument for each of the other keys follows the rules of the owners: what was charged and what was given back, four doubles, and its
-- name as above.
--
-- Expiry: 48 h after the hour, or after the key was made if that is later.
--
-- Takes: now, extra, read, pack
-- Declares: counted, plain, tally

-- plain is how many keys there are that are not of a count.
local counted, plain, tally = 0, #KEYS, nil
if extra >= COUNTED then
  counted = (extra - extra % COUNTED) / COUNTED
  extra, plain = extra % COUNTED, plain - counted

  -- Counts in the minute of a date, which is in the hour that starts then: these numbers under the first key, and under the others what
  -- their arguments from a place on say. All that it needs are arguments: a local of outside would cost more.
  tally = function(counted, plain, at, starts, date, a, b, back, rest,
      now, read, pack)
    local sub, places, past, numbers = string.sub, COUNT_PLACES, date - starts, ARGV[1]
    local minute = (past - past % MINUTE) / MINUTE
    -- To make a number a string takes as long as half a command. One byte more than it needs is read.
    local from, to = sub(places, 3 * minute + 1, 3 * minute + 3), sub(places, 3 * minute + 4, 3 * minute + 6)
    for i = 1, counted do
      local key, room = KEYS[plain + i], true
      if i > 1 then
        numbers = ARGV[at + i - 2]
        a, b, back, rest = read(COUNTS_FORMAT, numbers)
      end
      -- It may be something that nobody wrote, and what is charged by now has to be counted all the same.
      local was, x, y = redis.pcall('GETRANGE', key, from, to), 0, 0
      if #was < COUNT_SIZE then
        local ends, name, used = starts + COUNT_HOUR, sub(numbers, COUNT_NAME), COUNT_NAMES
        local head = #ARGV[1] - COUNT_HEAD
        local _, _, size, mark = read(COUNT_HEAD_FORMAT, ARGV[1], head)
        if i == 1 then
          name = sub(numbers, head - size, head - 1)
        else
          local first = #redis.call('GET', KEYS[plain + 1])
          if first > used then used = first end
          room = used + #name <= MOST_COUNT
        end
        if room then
          redis.call('SET', key, mark .. string.rep('\0', COUNT_BACK - COUNT_MARK), 'PXAT', (ends > now and ends or now) + COUNT_LIFE)
          if name ~= '' then redis.call('SETRANGE', KEYS[plain + 1], used, name) end
        end
      else
        x, y = read(COUNT_FORMAT, was)
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
