-- claim.lua: what stands before the budgets in a take, a block and the record of the idempotency key, and how a take
-- ends. take.lua describes the keys, the arguments, the record and the reply.
--
-- Takes: now, extra, read, pack
-- Declares: kind, candidates, owners, outcome, tail, short, trial, trial_short, hold, judged, live, answer

-- Owners after the live ones are those of the candidate, whose verdict is trial. short and trial_short are the
-- limits that are charged less than asked, packed as in the reply.
local kind = extra % CANDIDATE_OWNER
if kind == BLOCKED_TAKE then
  return pack(REPLY_FORMAT, BLOCKED, now)
end

local candidates = (extra - kind) / CANDIDATE_OWNER
local owners, outcome, tail, short = #KEYS, ADMITTED, '', ''
local trial, trial_short = ADMITTED, ''
local hold
if ARGV[2] ~= '' then
  owners = owners - 1
  local attempt, fingerprint, lease, life, rules, limits = read(CLAIM_FORMAT, ARGV[2])
  local abandoned = rules % RUN_AGAIN == REFUSE_ABANDONED and UNKNOWN or REPEAT
  local finish
  -- Writes that the attempt holds the claim.
  hold = function()
    local ends = finish or now + life
    redis.call('SET', KEYS[#KEYS], pack(HELD_FORMAT, RECORD_VERSION, RUNNING, now + lease, ends, attempt, fingerprint,
      now, outcome == REPEAT and 1 or 0, limits) .. short, 'PXAT', ends)
  end
  local record = redis.call('GET', KEYS[#KEYS])
  if record then
    local version, state, leased, ends, holder, asked, rest = read(RECORD_FORMAT, record)
    if version ~= RECORD_VERSION then
      error('record of version ' .. version)
    end
    if ends > now then
      finish = ends
      if asked ~= fingerprint then
        outcome = REUSED
      elseif state == ANSWERED then
        outcome, tail = REPLAYED, string.sub(record, rest)
      elseif state == DONE then
        -- What is charged anew lives anew.
        finish = nil
        if rules < RUN_AGAIN then
          outcome = NO_ANSWER
        end
      elseif state == FREE then
        outcome = abandoned
      elseif holder == attempt then
        local _, repeated = read(REPEATED_FORMAT, record, rest)
        outcome, tail = AGAIN, string.sub(record, rest)
        if repeated == 1 then
          outcome, tail, hold = REPEAT, '', nil
        end
      elseif leased > now then
        outcome, tail = IN_FLIGHT, pack(DATE_FORMAT, leased)
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
    states = pack(TRIAL_FORMAT, trial, #trial_short / SHORT_SIZE) .. trial_short .. states
  end
  return pack(TAKE_FORMAT, outcome, now, #short / SHORT_SIZE) .. short .. states .. tail
end
