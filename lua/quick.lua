-- quick.lua: the record of the idempotency key, and the usual take. It stands before state.lua and
-- take.lua, which do what it leaves: take.lua describes the keys, the arguments and the reply.
--
-- The usual take is from owners of up to four token buckets each, whose state is either absent or
-- was written for the same limits. It is written out limit by limit, because tables and loops would
-- double its time. ADR 0014 has the figures.

local ADMITTED, LIMITED, NEVER, REPLAYED = 1, 2, 3, 4
local IN_FLIGHT, REUSED, NO_ANSWER, REPEAT, AGAIN, UNKNOWN = 5, 6, 7, 8, 9, 13

-- Owners after the live ones are those of the candidate, whose verdict is trial. short and trial_short are the
-- limits that are charged less than asked, packed as in the reply.
local kind = extra % 4
if kind == 2 then
  return pack('>BI6', 12, now)
end

local candidates = (extra - kind) / 4
local owners, outcome, tail, short = #KEYS, ADMITTED, '', ''
local trial, trial_short = ADMITTED, ''
local hold
if ARGV[2] ~= '' then
  owners = owners - 1
  local attempt, fingerprint, lease, life, free, rules, limits = read('>c16c16I6I6BBI4', ARGV[2])
  local abandoned = rules % 2 == 1 and UNKNOWN or REPEAT
  local finish, repeats = nil, 0
  -- Writes that the attempt holds the claim.
  hold = function()
    local ends = finish or now + life
    redis.call('SET', KEYS[#KEYS], pack('>BBI6I6c16c16BI6BI4', 1, 1, now + lease, ends, attempt, fingerprint,
      repeats, now, outcome == REPEAT and 1 or 0, limits) .. short, 'PXAT', ends)
  end
  local record = redis.call('GET', KEYS[#KEYS])
  if record then
    local version, state, leased, ends, holder, asked, used, rest = read('>BBI6I6c16c16B', record)
    if version ~= 1 then
      error('record of version ' .. version)
    end
    if ends > now then
      finish, repeats = ends, used
      if asked ~= fingerprint then
        outcome = REUSED
      elseif state == 3 then
        outcome, tail = REPLAYED, string.sub(record, rest)
      elseif state == 2 then
        if free == 0 and rules < 2 then
          outcome = NO_ANSWER
        elseif used < free then
          outcome, repeats = REPEAT, used + 1
        end
      elseif state == 4 then
        outcome = abandoned
      elseif holder == attempt then
        local _, repeated = read('>I6B', record, rest)
        outcome, tail = AGAIN, string.sub(record, rest)
        if repeated == 1 then
          outcome, tail, hold = REPEAT, '', nil
        end
      elseif leased > now then
        outcome, tail = IN_FLIGHT, pack('>I6', leased)
      else
        outcome = abandoned
      end
    end
  end
end
local judged = outcome == ADMITTED
local live = owners - candidates
if not judged then
  owners, trial = live, 0
end

-- Charges owner o and those after it, and returns their states, or nil if the take is not a usual one;
-- then nothing was written.
local function quick(o)
  local ids, p1, r1, f1, p2, r2, f2, p3, r3, f3, p4, r4, f4 = read('<c32dddddddddddd', ARGV[2 + o])
  local d1, d2, d3, d4 = 0, 0, 0, 0
  local state = redis.call('GET', KEYS[o])
  if state then
    if #state ~= 59 then
      return nil
    end
    local version, last, known
    version, last, known, d1, d2, d3, d4 = read('>BI6c32I5I5I5I5', state)
    local elapsed = now - last
    if version ~= 3 or known ~= ids or elapsed < 0 then
      return nil
    end
    -- Above 2^53 a product is not exact, but then it is more than any debt.
    d1 = d1 - r1 * elapsed
    d2 = d2 - r2 * elapsed
    d3 = d3 - r3 * elapsed
    d4 = d4 - r4 * elapsed
    if d1 < 0 then d1 = 0 end
    if d2 < 0 then d2 = 0 end
    if d3 < 0 then d3 = 0 end
    if d4 < 0 then d4 = 0 end
  end
  local c1, c2, c3, c4 = 0, 0, 0, 0
  if judged then
    c1, c2, c3, c4 = read('<dddd', ARGV[1], 32 * o + 9)
    -- An amount whose product is not exact is above the capacity, and so is the product.
    c1, c2, c3, c4 = c1 * p1, c2 * p2, c3 * p3, c4 * p4
    if d1 + c1 > f1 or d2 + c2 > f2 or d3 + c3 > f3 or d4 + c4 > f4 then
      local function judge(i, debt, charge, full)
        if charge == 0 or debt + charge <= full then
          return charge
        elseif string.byte(ARGV[2 + o], 128 + i) == 5 then
          for o = o > live and live + 1 or 1, o - 1 do
            i = i + string.byte(ARGV[2 + o], -1) % 128
          end
          if o > live then
            trial_short = trial_short .. pack('>BI7', i - 1, 0)
          else
            short = short .. pack('>BI7', i - 1, 0)
          end
        elseif o > live then
          trial = (charge > full or trial == NEVER) and NEVER or LIMITED
        else
          outcome = (charge > full or outcome == NEVER) and NEVER or LIMITED
        end
        return 0
      end
      c1, c2 = judge(1, d1, c1, f1), judge(2, d2, c2, f2)
      c3, c4 = judge(3, d3, c3, f3), judge(4, d4, c4, f4)
    end
  end
  local rest = ''
  if o < owners then
    rest = quick(o + 1)
    if not rest then
      return nil
    end
  end
  if (o > live and trial or outcome) ~= ADMITTED or c1 + c2 + c3 + c4 == 0 then
    return pack('>BI6c32I5I5I5I5', 3, now, ids, d1, d2, d3, d4) .. rest
  end
  d1, d2, d3, d4 = d1 + c1, d2 + c2, d3 + c3, d4 + c4
  state = pack('>BI6c32I5I5I5I5', 3, now, ids, d1, d2, d3, d4)
  -- The time until the slowest limit is full.
  local full, wait = d1 / r1, d2 / r2
  if wait > full then full = wait end
  wait = d3 / r3
  if wait > full then full = wait end
  wait = d4 / r4
  if wait > full then full = wait end
  redis.call('SET', KEYS[o], state, 'PXAT', now + full + -full % 1)
  return state .. rest
end

-- Ends the take: writes the claim, and returns the reply.
local function answer(states)
  if outcome ~= ADMITTED then
    short = ''
  end
  if hold and (outcome == ADMITTED or outcome == REPEAT) then
    hold()
  end
  if candidates > 0 then
    if trial ~= ADMITTED then
      trial_short = ''
    end
    states = pack('>BB', trial, #trial_short / 8) .. trial_short .. states
  end
  return pack('>BI6B', outcome, now, #short / 8) .. short .. states .. tail
end

if kind == 1 and owners > 0 then
  local states = quick(1)
  if states then
    return answer(states)
  end
  if judged then
    outcome, short, trial, trial_short = ADMITTED, '', ADMITTED, ''
  end
end
