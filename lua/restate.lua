-- restate.lua: gives something back to a limit, or charges on. It stands after state.lua before settle and grant.
--
-- Takes: spend
-- Declares: restate

-- Sets what the entry of a limit owes or has used, in its terms. A token bucket of other terms that is given something
-- back keeps its date: whoever looks then finds as much more.
local function restate(limit, debt)
  local e = limit.other
  if not e then
    return spend(limit, debt)
  elseif e.tag == TOKEN and debt > e.debt then
    e.date, e.repaid = limit.at, 0
  end
  e.debt, limit.changed = debt, true
end
