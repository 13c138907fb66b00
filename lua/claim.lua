-- claim.lua: what stands before the budgets in a take: a block, and the record of the idempotency key. take.lua describes the keys, the arguments, the record and the reply.
--
-- Takes: now, extra, read, pack, counted, plain
-- Declares: kind, candidates, owners, outcome, tail, short, trial, trial_short, holds, attempt, fingerprint, lease, life,
--   limits, finish, judged, live, points, requests, hour

-- Owners after the live ones are those of the candidate, whose verdict is trial. short and trial_short are the
-- limits that are charged less than asked, packed as in the reply.
local kind = extra % CANDIDATE_OWNER
if kind == BLOCKED_TAKE then
  return pack(REPLY_FORMAT, BLOCKED, now)
end

local candidates = (extra - kind) / CANDIDATE_OWNER
local owners, outcome, tail, short = plain, ADMITTED, '', ''
local trial, trial_short = ADMITTED, ''
-- Whether the attempt takes the claim if the take is admitted, what that says, and the end that the record had.
local holds = ARGV[2] ~= ''
local attempt, fingerprint, lease, life, limits, finish
if ARGV[2] ~= '' then
  owners = owners - 1
  local rules
  attempt, fingerprint, lease, life, rules, limits = read(CLAIM_FORMAT, ARGV[2])
  local abandoned = rules % RUN_AGAIN == REFUSE_ABANDONED and UNKNOWN or REPEAT
  local record = redis.call('GET', KEYS[plain])
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
          outcome, tail, holds = REPEAT, '', false
        end
      elseif leased > now then
        outcome, tail = IN_FLIGHT, pack(DATE_FORMAT, leased)
      else
        outcome = abandoned
      end
    end
  end
end
local points, requests, hour
if counted > 0 then
  points, requests, hour = read(COUNTED_FORMAT, ARGV[1], #ARGV[1] - COUNTED_HEAD)
  if now < hour or now >= hour + COUNT_HOUR then
    return pack(REPLY_FORMAT, OTHER_WINDOW, now)
  end
end
local judged = outcome == ADMITTED
local live = owners - candidates
if not judged then
  owners, trial = live, 0
end
