-- exchange.lua: takes what an instance reports, and moves the shed share of the fleet once a beat.
--
-- KEYS:
--   KEYS[1]  the throttle of the namespace
-- ARGV:
--   ARGV[1]  the instance
--   ARGV[2]  1 if it has signals, else 0
--   ARGV[3]  numbers, text with blanks between them: pressure, weight, admitted, completed, 8 offered, 8 sheddable
--
-- Value, a hash: the field i and a name has the report of an instance, "date fresh" and the numbers above; the field s has the state, "shed
-- fresh hold next pressure instances reported stale" and 8 rooms. Dates are Unix ms of this server, numbers have 17 digits.
--
-- Who writes: each instance its own report, and the first one that comes a beat after the last step the state. So there is one integrator, and a
-- step for each beat, however many instances there are.
--
-- Reply: the shed share now, pressure, instances, how many have signals, 1 if these are too few, 8 rooms; as texts. Nothing, if there are too
-- many instances.
--
-- Expiry: when the share of instances that are gone has fallen to nothing.
--
-- The arithmetic is that of law.go and centre.go, in their order, so that both come to the same bits.

local BEAT, HOLD, STALE, FADE, LIFE, MOST = 1000, 3000, 3000, 5000, 10000, 1000
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function numbers(text)
  local all = {}
  for word in string.gmatch(text, '%S+') do
    local n = tonumber(word) or 0
    -- A date that is NaN would never come.
    all[#all + 1] = n == n and n or 0
  end
  return all
end

local function text(all)
  local words = {}
  for i = 1, #all do
    words[i] = string.format('%.17g', all[i])
  end
  return table.concat(words, ' ')
end

local state = numbers(redis.call('HGET', KEYS[1], 's') or '')
if #state ~= 16 then
  state = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
end
-- A clock that was set back must not freeze the share.
local changed = state[2] > now or state[3] > now + HOLD
state[2] = math.min(state[2], now)
state[3] = math.min(state[3], now + HOLD)

-- The reports of others are read once a beat.
local due = now >= state[4] or state[4] > now + BEAT
local mine = 'i' .. ARGV[1]
local reports = {}
if due then
  local values = redis.call('HGETALL', KEYS[1])
  for i = 1, #values, 2 do
    local field = values[i]
    if field ~= 's' and field ~= mine then
      local r = numbers(values[i + 1])
      if #r ~= 22 or now - r[1] > LIFE or r[1] - now > BEAT then
        redis.call('HDEL', KEYS[1], field)
      else
        r.name = string.sub(field, 2)
        reports[#reports + 1] = r
      end
    end
  end
end
-- The state is a field too, once there is one.
if redis.call('HEXISTS', KEYS[1], mine) == 0 and redis.call('HLEN', KEYS[1]) > MOST then
  return {}
end
local report = now .. ' ' .. ARGV[2] .. ' ' .. ARGV[3]
redis.call('HSET', KEYS[1], mine, report)

local function shed()
  return state[1] * math.max(0, math.min(1, 1 - (now - state[2] - STALE) / FADE))
end

local function step(pressure, admitted, completed, most)
  local keep = 1 - shed()
  if pressure > 1 and now >= state[3] then
    local down = math.max(0.7, math.sqrt(1 / pressure))
    if admitted >= 20 then
      local flow = completed / admitted
      if flow < 0.95 then
        down = math.max(0.4, math.min(down, flow * 0.95))
      end
    end
    keep = keep * down
    state[3] = now + HOLD
  elseif pressure < 0.95 then
    keep = keep * (1 + math.min(0.03, 0.25 * (0.95 - pressure)))
  end
  state[1] = math.max(0, math.min(1 - keep, most))
  state[2] = now
end

local function move()
  state[4] = now + BEAT
  state[6] = #reports
  local fresh = {}
  for _, r in ipairs(reports) do
    if r[2] == 1 and now - r[1] <= STALE then
      fresh[#fresh + 1] = r
    end
  end
  state[7] = #fresh
  if #fresh == 0 or 2 * #fresh < #reports then
    state[8] = 1
    return
  end
  state[8] = 0
  table.sort(fresh, function(a, b) return a.name < b.name end)
  local admitted, completed, offered = 0, 0, 0
  local sheddable = {0, 0, 0, 0, 0, 0, 0, 0}
  for _, r in ipairs(fresh) do
    admitted = admitted + r[5]
    completed = completed + r[6]
    for order = 1, 8 do
      offered = offered + r[6 + order]
      sheddable[order] = sheddable[order] + r[14 + order]
    end
  end
  local most = 0
  for order = 1, 8 do
    if offered > 0 then
      state[8 + order] = sheddable[order] / offered
    end
    most = most + state[8 + order]
  end
  -- That of pressureOf.
  table.sort(fresh, function(a, b)
    if a[3] ~= b[3] then
      return a[3] < b[3]
    end
    return a.name < b.name
  end)
  state[5] = fresh[1][3]
  if #fresh > 2 then
    local heaviest, second = 0, 0
    for _, r in ipairs(fresh) do
      local w = math.max(1, r[4])
      second = math.max(second, math.min(heaviest, w))
      heaviest = math.max(heaviest, w)
    end
    local cut = math.max(1, math.floor(#fresh / 10))
    local sum, weight = 0, 0
    for i = 1 + cut, #fresh - cut do
      local w = math.min(second, math.max(1, fresh[i][4]))
      sum = sum + w * fresh[i][3]
      weight = weight + w
    end
    state[5] = sum / weight
  end
  step(state[5], admitted, completed, math.min(1, most))
end

if due then
  local own = numbers(report)
  own.name = ARGV[1]
  reports[#reports + 1] = own
  move()
end
if due or changed then
  redis.call('HSET', KEYS[1], 's', text(state))
end
redis.call('PEXPIRE', KEYS[1], LIFE)
return {text({shed(), state[5], state[6], state[7], state[8],
  state[9], state[10], state[11], state[12], state[13], state[14], state[15], state[16]})}
