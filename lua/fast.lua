-- fast.lua: the fast path of a take. It stands after claim.lua and before state.lua and take.lua, which do what it
-- leaves. take.lua describes the keys, the arguments and the reply.
--
-- A fast take is from owners of up to four token buckets each, whose state is either absent or
-- was written for the same limits. It is written out limit by limit, because tables and loops would
-- double its time. ADR 0014 has the figures.
--
-- Takes: now, read, pack, kind, owners, live, judged, outcome, short, trial, trial_short, answer
-- Declares: fast

-- Charges owner o and those after it, and returns their states, or nil if the take is not a fast one;
-- then nothing was written.
local function fast(o)
  local ids, p1, r1, f1, p2, r2, f2, p3, r3, f3, p4, r4, f4 = read(FAST_RULES_FORMAT, ARGV[2 + o])
  local d1, d2, d3, d4 = 0, 0, 0, 0
  local code, deadline = nil, 0
  local state = redis.call('GET', KEYS[o])
  if state then
    if #state ~= FAST_SIZE then
      return nil
    end
    local version, last, known
    version, code, last, known, d1, d2, d3, d4 = read(FAST_FORMAT, state)
    local elapsed = now - last
    if version ~= FAST_VERSION or known ~= ids or elapsed < 0 then
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
    -- The deadline, see state.lua.
    if code >= CODE_STEPS then
      local step = code % CODE_STEPS
      local unit = 2 ^ ((code - step) / CODE_STEPS + CODE_SHIFT)
      deadline = last - last % (CODE_STEPS * unit) + step * unit
      if deadline <= last then deadline = deadline + CODE_STEPS * unit end
    end
  end
  local c1, c2, c3, c4 = 0, 0, 0, 0
  if judged then
    c1, c2, c3, c4 = read(FAST_AMOUNTS_FORMAT, ARGV[1], FAST_AMOUNTS_SIZE * (o - 1) + FAST_AMOUNTS)
    -- An amount whose product is not exact is above the capacity, and so is the product.
    c1, c2, c3, c4 = c1 * p1, c2 * p2, c3 * p3, c4 * p4
    if d1 + c1 > f1 or d2 + c2 > f2 or d3 + c3 > f3 or d4 + c4 > f4 then
      local function judge(i, debt, charge, full)
        if charge == 0 or debt + charge <= full then
          return charge
        elseif string.byte(ARGV[2 + o], FAST_FLAGS + i) == TAG * TOKEN + LENIENT then
          for o = o > live and live + 1 or 1, o - 1 do
            i = i + string.byte(ARGV[2 + o], -1) % FAST_OWNER
          end
          if o > live then
            trial_short = trial_short .. pack(SHORT_FORMAT, i - 1, 0)
          else
            short = short .. pack(SHORT_FORMAT, i - 1, 0)
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
    rest = fast(o + 1)
    if not rest then
      return nil
    end
  end
  if (o > live and trial or outcome) ~= ADMITTED or c1 + c2 + c3 + c4 == 0 then
    return pack(FAST_FORMAT, FAST_VERSION, 0, now, ids, d1, d2, d3, d4) .. rest
  end
  d1, d2, d3, d4 = d1 + c1, d2 + c2, d3 + c3, d4 + c4
  -- The time until the slowest limit is full.
  local full, wait = d1 / r1, d2 / r2
  if wait > full then full = wait end
  wait = d3 / r3
  if wait > full then full = wait end
  wait = d4 / r4
  if wait > full then full = wait end
  full = full + -full % 1
  deadline = deadline - now
  if deadline >= full and deadline <= 2 * full + DEADLINE_ROOM then
    state = pack(FAST_FORMAT, FAST_VERSION, code, now, ids, d1, d2, d3, d4)
    -- It leaves the expiry as it is, and takes half the time of a SET that does.
    redis.call('SETRANGE', KEYS[o], '0', state)
    return state .. rest
  end
  deadline = now + full
  if code then
    local _, shift = math.frexp(full / UNITS_LEFT)
    if shift < UNIT_SHIFT then shift = UNIT_SHIFT end
    local unit = 2 ^ shift
    deadline = deadline - deadline % unit + unit
    code = CODE_STEPS * (shift - CODE_SHIFT) + deadline / unit % CODE_STEPS
  end
  state = pack(FAST_FORMAT, FAST_VERSION, code or 0, now, ids, d1, d2, d3, d4)
  redis.call('SET', KEYS[o], state, 'PXAT', deadline)
  return state .. rest
end

if kind == FAST_TAKE and owners > 0 then
  local states = fast(1)
  if states then
    return answer(states)
  end
  if judged then
    outcome, short, trial, trial_short = ADMITTED, '', ADMITTED, ''
  end
end
