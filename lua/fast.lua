-- fast.lua: the fast path of a take. It stands after claim.lua and before state.lua and take.lua, which do what it
-- leaves: the block that it opens is theirs. take.lua describes the keys, the arguments and the reply.
--
-- A fast take is from owners without soft limits, whose state is either absent or was written for the same limits in the
-- same terms. Up to four token buckets are written out limit by limit, because tables and loops would double
-- their time; others are read and written entry by entry, without a table. The figures are in
-- docs/adr/0002-store-each-owner-as-one-string.md. Functions get what they need as arguments: a local of outside that a
-- function uses costs as much as ten arguments.
--
-- Takes: now, read, pack, kind, owners, live, judged, outcome, short, trial, trial_short
-- Declares: entry, fast, states

-- Charges limit i of n of an owner who has one entry for each, and what follows it. It returns what fast does, and of
-- this limit and those after it the entries, when they count nothing any more, and whether any has changed.
--   rules, state   those of owner o, and the place of the entry in the state
--   amounts, dates the places of the next amount, and of the next window of the calendar, in ARGV[1]
--   k              how many limits of the same policy stand before it
local function entry(entry, fast, rules, i, n, state, place, amounts, dates, k,
    o, owners, live, judged, read, pack, now, outcome, short, trial, trial_short)
  local p, r, full, id, flags = read(RULE_FORMAT, rules, RULE_SIZE * (i - 1) + 1)
  local lenient = flags % SOFT
  local tag = (flags - flags % TAG) / TAG
  local amount, from, to = 0, nil, nil
  if judged then amount = read(AMOUNT_FORMAT, ARGV[1], amounts) end
  if tag >= HOUR then
    from, to = read(WINDOW_FORMAT, ARGV[1], dates)
    if now < from or now >= to then
      return nil
    end
    dates, r = dates + WINDOW_SIZE, to - from
  end
  -- r is the length of a window. ends is when the entry counts nothing any more.
  local debt, previous, closes, ends, after = 0, 0, 0, 0, place
  if state then
    local is = string.byte(state, place)
    if is == 0 then
      after = place + 1
    else
      local _, known, date, length, rate
      after = place + ((tag == TOKEN or tag == SLIDING) and LONG_ENTRY_SIZE or ENTRY_SIZE)
      if is ~= tag or after > #state + 1 then
        return nil
      elseif tag == TOKEN then
        _, known, date, length, rate, debt = read(LONG_ENTRY_FORMAT, state, place)
        if length ~= p or rate ~= r or date > now then
          return nil
        end
        ends = debt / r
        ends = date + ends + -ends % 1
        debt = debt - r * (now - date)
      else
        if tag == SLIDING then
          _, known, closes, length, debt, previous = read(LONG_ENTRY_FORMAT, state, place)
        else
          _, known, closes, length, debt = read(ENTRY_FORMAT, state, place)
        end
        ends = closes
        if tag == SLIDING and debt > 0 then ends = closes + length end
        if to and closes > now and closes ~= to or not to and (length ~= r or closes - now > r + AHEAD) then
          return nil
        elseif closes <= now then
          previous, debt, closes = debt, 0, closes + length
        end
      end
      if known ~= id then
        return nil
      elseif ends <= now then
        debt, previous, closes = 0, 0, 0
      end
    end
  end
  if amount > 0 then
    local level = debt
    if previous > 0 then
      local overlap = closes - now
      if overlap > r then overlap = r end
      level = debt * p + previous * overlap
    elseif tag == SLIDING then
      level = debt * p
    end
    if amount * p > full or level > full - amount * p then
      local never = amount > full / p
      if lenient == 1 and o > live then
        trial_short = trial_short .. pack(SHORT_FORMAT, k, 0)
      elseif lenient == 1 then
        short = short .. pack(SHORT_FORMAT, k, 0)
      elseif o > live then
        trial = (never or trial == NEVER) and NEVER or LIMITED
      else
        outcome = (never or outcome == NEVER) and NEVER or LIMITED
      end
      amount = 0
    end
  end
  local rest, text, last, changed = '', '', 0, false
  if i < n then
    rest, outcome, short, trial, trial_short, text, last, changed = entry(entry, fast, rules, i + 1, n, state, after,
      amounts + AMOUNT_SIZE, dates, k + 1, o, owners, live, judged, read, pack, now, outcome, short, trial, trial_short)
  elseif state and after <= #state then
    return nil
  elseif o < owners then
    rest, outcome, short, trial, trial_short = fast(entry, fast, o + 1, dates, o == live and 0 or k + 1, owners, live,
      judged, read, pack, now, outcome, short, trial, trial_short)
  end
  if not rest then
    return nil
  end
  if amount > 0 and (o > live and trial or outcome) == ADMITTED then
    changed = true
    if tag == TOKEN then
      debt = debt + amount * p
      ends = debt / r
      ends = now + ends + -ends % 1
      text = pack(LONG_ENTRY_FORMAT, TOKEN, id, now, p, r, debt) .. text
    else
      if closes == 0 then closes = to or now + r end
      ends = closes
      if tag == SLIDING then
        ends = closes + r
        text = pack(LONG_ENTRY_FORMAT, tag, id, closes, r, debt + amount, previous) .. text
      else
        text = pack(ENTRY_FORMAT, tag, id, closes, r, debt + amount) .. text
      end
    end
  elseif ends > now then
    text = string.sub(state, place, after - 1) .. text
  else
    text = NO_ENTRY .. text
  end
  return rest, outcome, short, trial, trial_short, text, ends > last and ends or last, changed
end

-- Charges owner o and those after it. It returns their states and how the take ends: outcome, short, trial and
-- trial_short. It returns nil if the take is not a fast one; then nothing was written.
--   place  that of its first amount in ARGV[1]
--   k      how many limits of the same policy stand before it
local function fast(entry, fast, o, place, k, owners, live, judged, read, pack, now, outcome, short, trial, trial_short)
  local rules = ARGV[2 + o]
  local n = string.byte(rules, -1)
  local state = redis.call('GET', KEYS[o])
  local deadline, code, rest = 0, 0, ''
  -- In how many ms all is full, the entries, or the debts.
  local full, text, ids
  local d1, d2, d3, d4 = 0, 0, 0, 0
  if n < FAST_OWNER then
    if state then
      if #state < MIXED_ENTRIES or string.byte(state) ~= MIXED_VERSION then
        return nil
      end
      deadline = read(DATE_FORMAT, state, 2)
    end
    local changed
    rest, outcome, short, trial, trial_short, text, full, changed = entry(entry, fast, rules, 1, n, state, MIXED_ENTRIES,
      place, place + AMOUNT_SIZE * n, k, o, owners, live, judged, read, pack, now, outcome, short, trial, trial_short)
    if not rest then
      return nil
    elseif not changed then
      return pack(MIXED_FORMAT, MIXED_VERSION, 0) .. text .. rest, outcome, short, trial, trial_short
    end
    full = full - now
  else
    local p1, r1, f1, p2, r2, f2, p3, r3, f3, p4, r4, f4
    ids, p1, r1, f1, p2, r2, f2, p3, r3, f3, p4, r4, f4 = read(FAST_RULES_FORMAT, rules)
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
      if code >= CODE_STEPS then
        local step = code % CODE_STEPS
        local unit = 2 ^ ((code - step) / CODE_STEPS + CODE_SHIFT)
        deadline = last - last % (CODE_STEPS * unit) + step * unit
        if deadline <= last then deadline = deadline + CODE_STEPS * unit end
      end
    end
    local c1, c2, c3, c4 = 0, 0, 0, 0
    if judged then
      c1, c2, c3, c4 = read(FAST_AMOUNTS_FORMAT, ARGV[1], place)
      -- An amount whose product is not exact is above the capacity, and so is the product.
      c1, c2, c3, c4 = c1 * p1, c2 * p2, c3 * p3, c4 * p4
      if d1 + c1 > f1 or d2 + c2 > f2 or d3 + c3 > f3 or d4 + c4 > f4 then
        local function judge(i, debt, charge, full)
          if charge == 0 or debt + charge <= full then
            return charge
          elseif string.byte(rules, FAST_FLAGS + i) == TAG * TOKEN + LENIENT then
            if o > live then
              trial_short = trial_short .. pack(SHORT_FORMAT, k + i - 1, 0)
            else
              short = short .. pack(SHORT_FORMAT, k + i - 1, 0)
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
    if o < owners then
      rest, outcome, short, trial, trial_short = fast(entry, fast, o + 1, place + FAST_AMOUNTS_SIZE,
        o == live and 0 or k + n - FAST_OWNER, owners, live, judged, read, pack, now, outcome, short, trial, trial_short)
      if not rest then
        return nil
      end
    end
    if (o > live and trial or outcome) ~= ADMITTED or c1 + c2 + c3 + c4 == 0 then
      return pack(FAST_FORMAT, FAST_VERSION, 0, now, ids, d1, d2, d3, d4) .. rest, outcome, short, trial, trial_short
    end
    d1, d2, d3, d4 = d1 + c1, d2 + c2, d3 + c3, d4 + c4
    full = d1 / r1
    local wait = d2 / r2
    if wait > full then full = wait end
    wait = d3 / r3
    if wait > full then full = wait end
    wait = d4 / r4
    if wait > full then full = wait end
    full = full + -full % 1
  end
  -- The deadline, see state.lua.
  local stays = deadline - now >= full and deadline - now <= 2 * full + DEADLINE_ROOM
  if not stays then
    deadline, code = now + full, 0
    if state then
      local _, shift = math.frexp(full / UNITS_LEFT)
      if shift < UNIT_SHIFT then shift = UNIT_SHIFT end
      local unit = 2 ^ shift
      deadline = deadline - deadline % unit + unit
      code = CODE_STEPS * (shift - CODE_SHIFT) + deadline / unit % CODE_STEPS
    end
  end
  if text then
    text = pack(MIXED_FORMAT, MIXED_VERSION, deadline < END_OF_DATES and deadline or 0) .. text
  else
    text = pack(FAST_FORMAT, FAST_VERSION, code, now, ids, d1, d2, d3, d4)
  end
  if not stays then
    redis.call('SET', KEYS[o], text, 'PXAT', deadline)
  elseif #text == #state then
    -- It leaves the expiry as it is, in less time than a SET that does.
    redis.call('SETRANGE', KEYS[o], '0', text)
  else
    redis.call('SET', KEYS[o], text, 'KEEPTTL')
  end
  return text .. rest, outcome, short, trial, trial_short
end

local states
if kind == FAST_TAKE and owners > 0 then
  local all, is, less, tried, trial_less = fast(entry, fast, 1, FAST_AMOUNTS, 0, owners, live, judged, read, pack, now,
    outcome, short, trial, trial_short)
  if all then
    states, outcome, short, trial, trial_short = all, is, less, tried, trial_less
  end
end
repeat
  if states then
    break
  end
