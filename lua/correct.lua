-- correct.lua: changes of what is stored that do not judge. It stands after state.lua before each script that corrects
-- a charge or gives budget back.

-- The entry of a limit as it is now, for a change of it in its own terms: the limit itself if these are those of the
-- limit, or are so from now on.
local function present(limit)
  if limit.other and joins(limit) then
    convert_entry(limit)
  end
  return limit.other or limit
end

-- Sets the debt of the entry of a limit in the terms of the entry.
local function restate(limit, debt)
  if limit.other then
    limit.other.debt, limit.changed = debt, true
  else
    spend(limit, debt)
  end
end
