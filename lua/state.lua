-- state.lua: the clock, the stored state of one owner, and the arithmetic on it.
-- It stands before each script. Package bucket has the same arithmetic in Go.
--
-- State of an owner, a string, big endian:
--   version   1 byte: 1 if every p fits 4 bytes, else 2
--   last      6 bytes, Unix ms, the date of the debts
--   known     1 byte, how many limits the last writer knew
--   and for each known limit:
--   id        2 bytes, a hash of its unit and name
--   p         4 bytes or, in version 2, 5: debt is in units of 1/p token
--   debt      7 bytes
--   and for each foreign limit, one that the last writer did not know:
--   id 2, p 5, debt 7
--   last      6 bytes, Unix ms, the date of this debt
--   drop      6 bytes, Unix ms, when it is forgotten
-- Four limits are 60 bytes, the most for which Redis allocates 64.
-- The key expires when every known limit is full and every foreign one is to be forgotten: an
-- absent key is a full bucket.
--
-- Rules of an owner, an argument, big endian, for each limit:
--   id 2 bytes, p 5, r 7 (units that decay each ms), capacity 7 (tokens), mode 1 (0 enforce, 1 shadow)

local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local read, pack, rep = struct.unpack, struct.pack, string.rep
local EXACT = 2 ^ 53
local NARROW = 2 ^ 32

-- a / b rounded up, for integers up to 2^53.
local function ceil_div(a, b)
  local rest = math.fmod(a, b)
  if rest > 0 then
    return (a - rest) / b + 1
  end
  return a / b
end

-- A debt in units of 1/from token, in units of 1/p, rounded up, at most the deepest overdraft.
local function convert(debt, from, p, capacity)
  if from ~= p then
    local rest = math.fmod(debt, from)
    debt = (debt - rest) / from * p
    if rest > 0 then
      debt = debt + (from * p >= EXACT and p or ceil_div(rest * p, from))
    end
  end
  return math.min(debt, 2 * capacity * p)
end

-- The debt after a time that may be negative.
local function decay(debt, r, elapsed)
  if elapsed <= 0 then
    return debt
  end
  return math.max(0, debt - r * elapsed)
end

-- Reads a state whose limits are not exactly those of the rules, in their order. It sets the debts,
-- and returns the foreign limits packed, and when the last of them is to be forgotten.
local function load_other(key, state, rules, debts, format, known, last)
  local place = {}
  for i = 1, #debts do
    place[rules[5 * i - 4]] = i
    debts[i] = 0
  end
  local foreign, keep, at = {}, 0, 9
  while at <= #state do
    local id, p, debt, own, drop
    if known > 0 then
      known = known - 1
      id, p, debt, at = read('>' .. format, state, at)
      own = last
    else
      id, p, debt, own, drop, at = read('>I2I5I7I6I6', state, at)
    end
    local i = place[id]
    if i and (not drop or drop > now) then
      local rule = 5 * i
      debts[i] = decay(convert(debt, p, rules[rule - 3], rules[rule - 1]), rules[rule - 2], now - own)
    elseif not i then
      drop = drop or now + redis.call('PTTL', key)
      if drop > now then
        foreign[#foreign + 1] = pack('>I2I5I7I6I6', id, p, debt, own, drop)
        keep = math.max(keep, drop)
      end
    end
  end
  return table.concat(foreign), keep
end

-- Reads the state of an owner: rules (5 numbers a limit), debts as they are now, the date that the
-- state gets when it is written, foreign limits, when the last of them is to be forgotten, and
-- whether the state lies so far in the future, after the clock was set back, that it must be dated
-- anew even by a refusal.
local function load(key, packed)
  local n = #packed / 22
  local rules = {read('>' .. rep('I2I5I7I7B', n), packed)}
  local debts = {}
  local state = redis.call('GET', key)
  if not state then
    for i = 1, n do
      debts[i] = 0
    end
    return rules, debts, now, '', 0, false
  end
  local version, last, known = read('>BI6B', state)
  local format, size = 'I2I4I7', 13
  if version == 2 then
    format, size = 'I2I5I7', 14
  elseif version ~= 1 then
    error('state of version ' .. version)
  end
  local at, redated, elapsed = now, false, now - last
  if elapsed < 0 then
    redated = elapsed < -5000
    at = redated and now or last
    elapsed = 0
  end
  local same = known == n and #state == 8 + size * n
  if same then
    local entries = {read('>' .. rep(format, n), state, 9)}
    for i = 1, n do
      local rule, entry = 5 * i, 3 * i
      local p = rules[rule - 3]
      if entries[entry - 2] ~= rules[rule - 4] or entries[entry - 1] ~= p then
        same = false
        break
      end
      local debt, most = entries[entry], 2 * rules[rule - 1] * p
      if debt > most then
        debt = most
      end
      -- Above 2^53 the product is not exact, but then it is more than any debt.
      debt = debt - rules[rule - 2] * elapsed
      debts[i] = debt > 0 and debt or 0
    end
  end
  if same then
    return rules, debts, at, '', 0, redated
  end
  for i = 1, n do
    debts[i] = 0
  end
  local foreign, keep = load_other(key, state, rules, debts, format, known, last)
  return rules, debts, at, foreign, keep, redated
end

-- Writes the state of an owner, or removes it when it means the same as none.
local function save(key, rules, debts, at, foreign, keep)
  local fields, full, n = {}, 0, #debts
  local version, format = 1, 'I2I4I7'
  for i = 1, n do
    local rule, entry = 5 * i, 3 * i
    local debt, p = debts[i], rules[rule - 3]
    if p >= NARROW then
      version, format = 2, 'I2I5I7'
    end
    fields[entry - 2] = rules[rule - 4]
    fields[entry - 1] = p
    fields[entry] = debt
    local wait = math.ceil(debt / rules[rule - 2])
    if wait > full then
      full = wait
    end
  end
  local expiry = math.max(at + full, keep)
  if expiry <= now then
    redis.call('DEL', key)
    return
  end
  local state = pack('>BI6B' .. rep(format, n), version, at, n, unpack(fields)) .. foreign
  redis.call('SET', key, state, 'PXAT', expiry)
end
