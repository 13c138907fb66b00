package state

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// names are the numbers and formats of the wire by the names that the scripts have for them. A format is of Lua's
// struct library; places count from 1, as they do there.
var names = map[string]any{
	"LATE": Late, "APPLIED": Applied, "NOT_APPLIED": NotApplied, "EXPIRED": Expired,
	"ADMITTED": Admitted, "LIMITED": Limited, "NEVER": Never, "REPLAYED": Replayed, "IN_FLIGHT": InFlight,
	"REUSED": Reused, "NO_ANSWER": NoAnswer, "REPEAT": Repeat, "AGAIN": Again, "OTHER_WINDOW": OtherWindow,
	"OTHER_OVERRIDES": OtherOverrides, "BLOCKED": Blocked, "UNKNOWN": Unknown,

	"FAST_TAKE": FastTake, "BLOCKED_TAKE": BlockedTake, "CANDIDATE_OWNER": CandidateOwner,

	"RUNNING": Running, "DONE": Done, "ANSWERED": Answered, "FREE": Free,

	"FAST_VERSION": fastVersion, "MIXED_VERSION": mixedVersion, "RECORD_VERSION": recordVersion,
	"OVERRIDES_VERSION": OverridesVersion,
	"TOKEN":             TokenBucket, "SLIDING": SlidingWindow, "HOUR": HourWindow, "YEAR": YearWindow,
	"LEASED": leasedBucket, "LEASE_SCALE": leaseScale, "MAX_SCALED_FULL": int64(MaxDebt / leaseScale), "MAX_SCALED_P": int64(maxLeasedP),
	"MAX_SCALED_R": int64(MaxExact / leaseScale), "MAX_LEASE": MaxLease, "LEASE_FORGOTTEN": leaseForgotten, "LEASE_LIFE": int64(leaseLife),
	"HOLDINGS_VERSION": holdingsVersion, "HOLDINGS_HEAD": holdingsHead, "SUM_SIZE": sumSize, "HOLDING_HEAD": holdingHead, "PART_SIZE": partSize,
	"GIVEN_SIZE": givenSize, "HOLDER_SIZE": holderSize, "MAX_HOLDERS": maxHolders, "NO_HOLDER": strings.Repeat(`\0`, holderSize), "EXCHANGE_NUMBERS": exchangeNumbers,
	"EXCHANGED": Exchanged, "NOT_KNOWN": NotKnown, "OLD_EXCHANGE": OldExchange, "OTHER_HOLDINGS": OtherHoldings, "NO_HOLDING": NoHolding,
	"MOST_DEMAND": int64(mostDemand), "LEASE_MARGIN": leaseMargin, "LEASE_DRIFT": leaseDrift,
	"LENIENT": flagLenient, "SOFT": flagSoft, "TAG": flagTag, "FAST_OWNER": fastOwner,
	"NO_ENTRY":         `\` + strconv.Itoa(int(tagNone)),
	"REFUSE_ABANDONED": refuseAbandoned, "RUN_AGAIN": runAgain,

	"EXACT": int64(MaxExact), "AHEAD": maxAhead, "MAX_FAST_DEBT": int64(maxFastDebt), "MARKER_LIFE": MarkerLife,
	"MAX_INSTANCES": MaxInstances, "LEASES": Leases, "LEASES_SIZE": len(Leases), "MAX_OVERRIDE_BYTES": MaxOverrideBytes,

	"CODE_SHIFT": codeShift, "CODE_STEPS": codeSteps, "UNIT_SHIFT": unitShift, "UNITS_LEFT": unitsLeft, "DEADLINE_ROOM": deadlineRoom,
	"END_OF_DATES": int64(endOfDates),

	"COUNTED": int64(Counted), "COUNT_HOUR": CountHour, "MINUTE": CountMinute, "COUNT_LIFE": countLife, "COUNT_SIZE": countSize,
	"COUNT_BACK": countBack, "COUNT_NAMES": countNames, "MOST_COUNT": MaxCount, "COUNT_PLACES": countPlaces(),
	// The head and its end stand before the last byte of the numbers, and a name of another key in its argument.
	"COUNT_HEAD": countHead - 1, "COUNTED_HEAD": countedHead - 1, "COUNT_MARK": MarkSize, "COUNT_NAME": countArg + 1,

	"FAST_LIMITS": FastLimits, "FAST_SIZE": fastSize, "SHORT_SIZE": ShortSize, "GENERATION_SIZE": GenerationSize, "GENERATION_END": strconv.Itoa(GenerationSize - 1),
	"RULE_SIZE": ruleSize, "RULE_ID_SIZE": fastIDSize, "RULE_NUMBERS_SIZE": rulesNumbers,
	"FAST_DEBT_SIZE": fastDebtSize,
	// The place of a limit before the first, to which the size of one is added for each.
	"FAST_IDS": fastIDs + 1 - fastIDSize, "FAST_DEBTS": fastDebts + 1 - fastDebtSize,
	"FAST_DATE": 2 + 1, "MIXED_ENTRIES": mixedHead + 1,
	"FAST_FLAGS": FastLimits * (fastIDSize + rulesNumbers), "FAST_NUMBERS": FastLimits*fastIDSize + 1 - rulesNumbers,
	// The numbers that all scripts are sent first, and those of the limits of a fast owner.
	"HEAD_NUMBERS": NumbersHead / DoubleSize, "KNOWN_PLACE": NumberGeneration + 1,
	"FAST_AMOUNTS": NumbersHead + 1, "FAST_AMOUNTS_SIZE": FastLimits * DoubleSize, "AMOUNT_SIZE": DoubleSize,
	"WINDOW_SIZE": CalendarNumbers * DoubleSize, "ENTRY_SIZE": smallestEntry, "LONG_ENTRY_SIZE": tokenSize,

	"HEAD_FORMAT": "<dd", "KNOWN_FORMAT": "<c8dd", "REPLY_FORMAT": ">BI6", "TAKE_FORMAT": ">BI6B", "TRIAL_FORMAT": ">BB",
	"SHORT_FORMAT": ">BI7", "DATE_FORMAT": ">I6", "CLAIM_FORMAT": ">c16c16I6I6BI4", "RECORD_FORMAT": ">BBI6I6c16c16",
	"HELD_FORMAT": ">BBI6I6c16c16I6BI4", "REPEATED_FORMAT": ">I6B", "END_FORMAT": ">c16B",
	"FAST_RULES_FORMAT": "<c32dddddddddddd", "FAST_AMOUNTS_FORMAT": "<dddd", "FAST_FORMAT": ">BBI6c32I5I5I5I5", "FAST_HEAD_FORMAT": ">BB", "MIXED_FORMAT": ">BI6",
	"FAST_ID_FORMAT": ">I2I4I2", "FAST_DEBT_FORMAT": ">I5", "RULE_FORMAT": "<dddHB", "FAST_NUMBERS_FORMAT": "<ddd", "AMOUNT_FORMAT": "<d", "WINDOW_FORMAT": "<dd", "RULE_ID_FORMAT": ">I2",
	"ENTRY_FORMAT": ">BI2I6I5I7", "LONG_ENTRY_FORMAT": ">BI2I6I5I7I7", "DEBT_FORMAT": ">I7",
	"EXCHANGE_FORMAT": ">c8I6I6I6I6B", "PLACE_FORMAT": ">I2", "EXCHANGED_FORMAT": ">BI2I2", "HOLDINGS_FORMAT": ">BBI2I6I6I6", "SUM_FORMAT": ">I2I5I7I7I7I7I7I7I6",
	"LEASE_FORMAT": ">c8I6I6", "MARKS_FORMAT": ">I6I6I6I6I6I6I6I6", "HOLDING_FORMAT": ">c8I6I6I6I6I6I6I6I6I6I6", "PART_FORMAT": ">I7I7I7I7I7I7I6", "GIVEN_FORMAT": ">I7I7I7I7I7I7I6B",
	"LEASED_FORMAT": ">BI2I6I5I7I7I7I7I6", "HELD_PARTS_FORMAT": ">I7I7I7I6",
	"COUNTS_FORMAT": "<dddd", "COUNT_HEAD_FORMAT": "<dd>Hc8<dd>I6", "COUNTED_FORMAT": "<dd>I6", "COUNT_FORMAT": ">I7I7", "SIZE_FORMAT": ">I4",
	"INSTANCE_FORMAT": ">c8I6", "INSTANCES_FORMAT": ">BI6I2BI2", "OVERRIDE_FORMAT": ">I2I2c0I6", "LENGTH_FORMAT": ">I2",
}

var word = regexp.MustCompile(`'[^']*'|[A-Za-z_][A-Za-z0-9_]*|\s*(?:==|~=|<=|>=|[=<>+*/%,])\s*`)

// Expand puts numbers and formats into the place of their names in the code of a script, and leaves out the spaces around
// operators. What is none of them stays.
func Expand(code string) string {
	return word.ReplaceAllStringFunc(code, func(word string) string {
		word = strings.TrimSpace(word)
		switch value := names[word].(type) {
		case nil:
			return word
		case string:
			return "'" + value + "'"
		default:
			return fmt.Sprintf("%d", value)
		}
	})
}

// Names returns the names that [Expand] knows.
func Names() []string {
	all := make([]string, 0, len(names))
	for name := range names {
		all = append(all, name)
	}
	return all
}
