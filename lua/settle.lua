-- settle.lua: corrects a charge by what the operation was worth, and ends its claim, once, or extends the lease of it.
--
-- KEYS, all under one hash tag:
--   KEYS[o]      state of owner o, for o = 1 .. plain - 1
--   KEYS[plain]  record of the idempotency key, if ARGV[2] is not empty, or else the marker of the
--                receipt
--   and those of count.lua
-- ARGV:
--   ARGV[1]      numbers, see clock.lua: extra is the date of the take in Unix ms, or to extend a lease its length in
--                ms, from now on; for each limit in tokens what it was charged, and how much more than that it is
--                worth
--   ARGV[2]      end of the claim, or empty: attempt 16 bytes, new state 1 (0 released: the
--                record is removed, or free if it is that of a repeat; 1 still in flight: its lease is
--                extended and nothing else is done; 2 done without an answer, 3 done with one)
--   ARGV[3]      answer
--   ARGV[3 + o]  rules of owner o, see state.lua
--   and what is counted, see count.lua
--
-- Reply, a string, big endian: outcome 1 byte (0 too late, 1 applied, 2 not applied: settled before,
-- too old, or not the holder of the claim, 10 other window), now in Unix ms 6, and if applied the
-- states of the owners before, and then after, see state.lua.
--
-- Expiry: a state as state.lua says, a marker after 60 s, a record at the end that it had.
--
-- Takes: now, extra, read, pack, call, load, decay, floor, min, room, adopts, adopt, restate, save, show, counted, plain, tally
-- Declares: taken, all, owed, earlier, later

local taken = extra

-- Everything is read before anything is written: a state or a record that cannot be read ends the
-- script, and its error says that nothing was done.
local all = {}
for o = 1, plain - 1 do
  all[o] = load(KEYS[o], ARGV[3 + o], 2)
  if not all[o] then
    return pack(REPLY_FORMAT, OTHER_WINDOW, now)
  end
end

if ARGV[2] ~= '' then
  local attempt, final = read(END_FORMAT, ARGV[2])
  local record = redis.call('GET', KEYS[plain])
  if not record then
    return pack(REPLY_FORMAT, NOT_APPLIED, now)
  end
  local version, state, leased, finish, holder, fingerprint, rest = read(RECORD_FORMAT, record)
  if version ~= RECORD_VERSION then
    error('record of version ' .. version)
  end
  if state ~= RUNNING or holder ~= attempt or finish <= now then
    return pack(REPLY_FORMAT, NOT_APPLIED, now)
  end
  if final == RUNNING then
    redis.call('SETRANGE', KEYS[plain], 2, pack(DATE_FORMAT, now + extra))
    return pack(REPLY_FORMAT, APPLIED, now)
  end
  local _, repeated = read(REPEATED_FORMAT, record, rest)
  if final == 0 and repeated == 0 then
    redis.call('DEL', KEYS[plain])
  elseif final == 0 then
    -- The charge of an earlier attempt, and what that did, must not be forgotten with the repeat.
    local header = pack(RECORD_FORMAT, RECORD_VERSION, FREE, now, finish, holder, fingerprint)
    redis.call('SET', KEYS[plain], header, 'PXAT', finish)
  else
    local header = pack(RECORD_FORMAT, RECORD_VERSION, final, leased, finish, holder, fingerprint)
    redis.call('SET', KEYS[plain], header .. ARGV[3], 'PXAT', finish)
  end
elseif now - taken >= MARKER_LIFE or not redis.call('SET', KEYS[plain], '', 'NX', 'PX', MARKER_LIFE) then
  return pack(REPLY_FORMAT, NOT_APPLIED, now)
end

-- What a limit still owes of a charge, in units of its own.
local function owed(limit, charged)
  local e = limit.other
  if e and (e.tag ~= TOKEN or limit.tag ~= TOKEN) then
    -- Nobody can tell the charge from what was charged in other terms.
    return 0
  elseif limit.tag == TOKEN then
    -- What the refill has repaid since the take, that of the limit or of its entry, was never lent.
    local left = decay(charged * limit.p, limit.base or limit.r, now - taken)
    if e then
      charged = min(charged, floor((EXACT - 1) / e.p))
      left = min(left, floor(decay(charged * e.p, e.r, now - taken) / e.p) * limit.p)
    end
    return left
  end
  -- A window that ended took what was charged in it along.
  return limit.finish > 0 and taken >= (limit.from or limit.finish - limit.length) and charged or 0
end

local earlier, later = {}, {}
for o = 1, plain - 1 do
  local owner = all[o]
  local write = false
  earlier[o] = show(owner)
  for i = 1, #owner.limits do
    local limit = owner.limits[i]
    local charged, more = call[owner.first + 2 * i - 1], call[owner.first + 2 * i]
    if more < 0 then
      local most = 2 * limit.capacity
      local back = min(min(-more, most) * limit.one, owed(limit, min(charged, most)), limit.other and limit.units or limit.debt)
      if back > 0 then
        local e = limit.other or limit
        if e ~= limit then
          back = floor(back / limit.one) * e.one
        end
        restate(limit, e.debt - min(back, e.debt))
      end
    elseif more > 0 then
      more = min(more, room(limit))
      if more > 0 then
        if limit.other and adopts(limit) then
          adopt(limit)
        end
        local e = limit.other or limit
        restate(limit, e.debt + more * e.one)
      end
    end
    write = write or limit.changed
  end
  if write then
    save(owner)
  end
  later[o] = show(owner)
end
if counted > 0 then
  local back, rest, _, _, a, b, date = read(COUNT_HEAD_FORMAT, ARGV[1], #ARGV[1] - COUNT_HEAD)
  tally(counted, plain, 3 + plain, date - date % COUNT_HOUR, date, a, b, back, rest, now, read, pack)
end
return pack(REPLY_FORMAT, APPLIED, now) .. table.concat(earlier) .. table.concat(later)
