// Package state is the decision core of the stores: what the scripts of package lua decide about packed states,
// as pure functions of integers and bytes. It reads no clock and does no I/O: the time is an argument.
//
// It is the one home of the arithmetic in Go, and of the names and numbers of the wire. The layouts stand in the headers
// of the scripts: of states, rules and numbers in state.lua and clock.lua, of records, claims and replies in take.lua, of
// override records in override.lua, of heartbeats in heartbeat.lua. Package bucket names the keys.
package state

// Outcome is the first byte of a reply: what the script did.
type Outcome byte

// The outcomes. Those from Admitted to Again and Unknown are of a take; Applied, NotApplied and Expired of
// the other scripts, which share their numbers.
const (
	// Late says that the caller no longer waits, and that nothing was done.
	Late       Outcome = 0
	Applied    Outcome = 1
	NotApplied Outcome = 2
	// Expired is an override record that has ended already.
	Expired  Outcome = 3
	Admitted Outcome = 1
	Limited  Outcome = 2
	Never    Outcome = 3
	// Replayed has the stored answer, InFlight the end of the lease.
	Replayed Outcome = 4
	InFlight Outcome = 5
	Reused   Outcome = 6
	// NoAnswer is done without an answer, and the claim does not run again.
	NoAnswer Outcome = 7
	// Repeat is admitted after an abandoned attempt, which was charged.
	Repeat Outcome = 8
	// Again is the first verdict for the same attempt.
	Again Outcome = 9
	// OtherWindow and OtherOverrides say that the caller knew another window of the calendar, or other
	// override records, and that nothing was done.
	OtherWindow    Outcome = 10
	OtherOverrides Outcome = 11
	Blocked        Outcome = 12
	// Unknown is an attempt that was abandoned, and a claim that refuses to run after it.
	Unknown Outcome = 13
)

// Tag is how a limit counts, as entries and rules say it.
type Tag byte

// The tags. Zero stands for no entry.
const (
	tagNone       Tag = 0
	TokenBucket   Tag = 1
	FixedWindow   Tag = 2
	SlidingWindow Tag = 3
	HourWindow    Tag = 4
	DayWindow     Tag = 5
	MonthWindow   Tag = 6
	YearWindow    Tag = 7
	// leasedBucket is that of an entry only: a token bucket of which instances hold something.
	leasedBucket Tag = 8
)

// Calendar reports whether windows follow the calendar, and not the first charge.
func (t Tag) Calendar() bool { return t >= HourWindow }

// The kinds of a take, in the number that it is sent as extra. CandidateOwner is added for each owner of the
// candidate.
const (
	AnyTake = 0
	// FastTake says that fast.lua knows the limits of all owners: none is soft.
	FastTake       = 1
	BlockedTake    = 2
	CandidateOwner = 4
)

// The states of the record of an idempotency key.
const (
	// Running is an attempt in flight.
	Running = 1
	// Done has no answer, Answered has one.
	Done     = 2
	Answered = 3
	// Free was charged and released by a repeat: nobody holds the claim.
	Free = 4
)

// What an override record says: the level of its owner, and the mode of its limits, where zero is none.
const (
	LevelTenant       = 0
	LevelTeam         = 1
	LevelUser         = 2
	LevelOperation    = 3
	ModeEnforce       = 1
	ModeWarn          = 2
	ModeShadow        = 3
	ModeOff           = 4
	OverrideUnlimited = 1
	OverrideBlocked   = 2
)

// The versions of what is stored.
const (
	OverridesVersion = 1

	fastVersion   = 5
	mixedVersion  = 6
	recordVersion = 2
)

// The flags of a limit, of an owner in the number of its limits, and of a claim.
const (
	flagLenient = 1
	flagSoft    = 2
	// flagTag times the tag of its entries is added to the flags of a limit.
	flagTag = 4
	// fastOwner is added to the number of limits.
	fastOwner       = 128
	refuseAbandoned = 1
	runAgain        = 2
)

// The sizes in bytes of what is packed.
const (
	DateSize   = 6
	DebtSize   = 7
	DoubleSize = 8
	SumSize    = 4
	// GenerationSize is that of the first bytes of override records, which tell one state of them from every other.
	GenerationSize = 8
	// ShortSize is that of a limit that was charged less than it was asked for.
	ShortSize = 1 + DebtSize
	// PlaceSize is that of where the record of a holder stands.
	PlaceSize = 2

	tagSize    = 1
	idSize     = 2
	lengthSize = 5
	// smallestEntry is the size of that of a window without one before it.
	smallestEntry = tagSize + idSize + DateSize + lengthSize + DebtSize
	keySize       = 16
	// A state of one date, with ids, p, r and debts of its limits.
	fastPSize    = 4
	fastRSize    = 2
	fastIDSize   = idSize + fastPSize + fastRSize
	fastDebtSize = 5
	fastIDs      = 2 + DateSize
	fastDebts    = fastIDs + FastLimits*fastIDSize
	fastSize     = fastDebts + FastLimits*fastDebtSize
	// mixedHead is what stands before the entries of a mixed state: version and deadline.
	mixedHead = 1 + DateSize
	// A rule: three doubles, id and flags; of a fast owner these stand in columns, with ids as in its state.
	rulesNumbers  = 3 * DoubleSize
	ruleSize      = rulesNumbers + idSize + 1
	fastRulesSize = FastLimits*(fastIDSize+rulesNumbers+1) + 1
	// A record up to what depends on its state, and of a running attempt up to the limits that were charged less.
	recordSize = 1 + 1 + 2*DateSize + 2*keySize
	heldSize   = DateSize + 1 + SumSize
	claimSize  = 2*keySize + 2*DateSize + 1 + SumSize
)

// The places of the numbers that all scripts are sent first, see clock.lua.
const (
	NumberBefore     = 0
	NumberExtra      = DoubleSize
	NumberGeneration = 2 * DoubleSize
	NumberFrom       = 3 * DoubleSize
	NumberUntil      = 4 * DoubleSize
	NumbersHead      = 5 * DoubleSize
	// CalendarNumbers is how many numbers a window of the calendar takes, see state.lua.
	CalendarNumbers = 2
)

// What fits.
const (
	// FastLimits is how many limits the owner of a fast take has at most. Its rules and its state have places for as
	// many.
	FastLimits = 4
	// MaxLimits is how many limits one call may touch in all.
	MaxLimits = 64
	// MaxExact is the end of the integers that a Lua double holds exactly.
	MaxExact = 1 << 53
	// MaxDebt bounds capacity × p, so that twice as much, the deepest overdraft, is still exact.
	MaxDebt = 1 << 52
	// MaxOverrideBytes is how much the override records of a tenant may take in their stored form.
	MaxOverrideBytes = 32 << 10
	// MaxInstances is the largest fleet.
	MaxInstances = 1000
	// MarkerLife is for how many milliseconds the marker of a receipt lives: a receipt is settled no later.
	MarkerLife = 60_000

	// What the state of one date has room for.
	maxFastP    = 1<<32 - 1
	maxFastR    = 1<<16 - 1
	maxFastDebt = 1<<40 - 1
	// maxAhead is how far, in milliseconds, an entry may lie in the future of a clock that was set back
	// before it is dated anew.
	maxAhead = 5000
)

// AnyGeneration stands for whichever override records are stored: no change of records is of this generation.
const AnyGeneration = "\xff\xff\xff\xff\xff\xff\xff\xff"
