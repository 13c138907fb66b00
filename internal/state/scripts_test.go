package state_test

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/luatest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
	"github.com/gqlgen-ratelimit/ratelimit/lua"
)

// What `make test-long` asks for is a hundred times as many calls, and all mistakes.
var (
	comparedCalls = flag.Int("calls", 10_000, "on how many calls Go and the scripts are compared byte for byte")
	allMutants    = flag.Bool("all-mutants", false, "look for the mistakes in scripts that few calls show, too")
)

const (
	chainLength = 5
	// mutantCalls is in how many calls a mistake has to show.
	mutantCalls = 100_000
	// batch is how many chains one EVAL has.
	batch    = 40
	mostKeys = 3*mostOwners + mostCounts + 2
)

// runsCalls runs many calls of the scripts, each on keys that it fills before and empties after, and returns what each
// replies and leaves. ARGV has for each call the script, its keys, each with - or + and its value, their expiry, its
// arguments and the time.
//
//nolint:dupword // It is Lua.
const runsCalls = `
local at, replies = 1, {}
local function pop()
  at = at + 1
  return ARGV[at - 1]
end
while at <= #ARGV do
  local script, n, expiry, keys, args = scripts[pop()], pop() + 0, pop(), {}, {}
  for i = 1, n do
    keys[i] = KEYS[i]
    local value = pop()
    if string.sub(value, 1, 1) == '+' then
      redis.call('SET', KEYS[i], string.sub(value, 2), 'PXAT', expiry)
    end
  end
  for i = 1, pop() + 0 do
    args[i] = pop()
  end
  local ran, reply = pcall(script, keys, args)
  if not ran then
    reply = 'error: ' .. (type(reply) == 'table' and reply.err or reply)
  end
  replies[#replies + 1] = (ran and '+' or '-') .. reply
  for i = 1, n do
    local value = redis.call('GET', KEYS[i])
    replies[#replies + 1] = value and string.format('%.0f ', redis.call('PEXPIRETIME', KEYS[i])) .. value or ''
    redis.call('DEL', KEYS[i])
  end
end
return replies`

// comparison compares the scripts with their like in Go.
type comparison struct {
	client *redis.Client
	text   string
	seed   uint64
	// fast counts the calls that fast.lua did, and entries those of owners that have no state of one date.
	calls, fast, entries, errors int
	outcomes                     map[string]int
}

// newComparison compares the scripts as they are, or changed.
func newComparison(t testing.TB, client *redis.Client, change ...mutant) *comparison {
	t.Helper()
	scripts := lua.Load()
	for _, m := range change {
		for _, script := range scripts.All() {
			if script.Name == m.script {
				require.NoError(t, luatest.Replace(script, m.is, m.becomes))
			}
		}
	}
	for _, script := range scripts.All() {
		require.NoError(t, luatest.SetClock(script))
	}
	// The marker of a receipt, and the instances, live by the clock of Redis.
	require.NoError(t, luatest.Replace(&scripts.Settle, "'PX', MARKER_LIFE", "'PXAT', now + MARKER_LIFE"))
	require.NoError(t, luatest.Replace(&scripts.Heartbeat, "'PX', extra", "'PXAT', now + extra"))
	general := lua.Expand("local floor, fmod")
	fast := strings.Replace(scripts.Take.Source, general, "do error('not the fast path') end\n"+general, 1)
	require.NotEqual(t, scripts.Take.Source, fast, "the general path begins with state.lua")
	var text strings.Builder
	text.WriteString("local scripts = {}\n")
	for _, script := range append(scripts.All(), &lua.Script{Name: "fast", Source: fast}) {
		fmt.Fprintf(&text, "scripts.%s = function(KEYS, ARGV)\n%s\nend\n", script.Name, script.Source)
	}
	text.WriteString(runsCalls)
	return &comparison{client: client, text: text.String(), seed: comparisonSeed(t), outcomes: map[string]int{}}
}

// expected is what a call has to reply and to leave.
type expected struct {
	what    string
	replies []string
	// may says that fast.lua may leave the call, and then has done nothing.
	may, fast bool
}

// run compares a batch of chains from the first on. The error says what differs first.
func (c *comparison) run(first uint64) error {
	var args []any
	var want []expected
	for chain := first; chain < first+batch; chain++ {
		w := newWorld(c.seed, chain)
		for step := range chainLength {
			call := w.next()
			what := fmt.Sprintf("TEST_SEED=%d chain %d step %d: %s", c.seed, chain, step, call.script)
			// Both paths of the scripts have to say the same.
			variants := []*textCall{{call, call.script}}
			if call.fast {
				variants = []*textCall{{call, "fast"}, {call.general(), call.script}}
			}
			reply := c.decide(call)
			for _, v := range variants {
				args = v.append(args)
				may := v.script == "fast" && !call.must
				want = append(want, expected{what + " by " + v.script, reply, may, v.script == "fast"})
			}
			c.calls++
		}
	}
	keys := make([]string, mostKeys)
	for i := range keys {
		keys[i] = "k" + strconv.Itoa(i)
	}
	replies, err := c.client.Eval(context.Background(), c.text, keys, args...).StringSlice()
	if err != nil {
		return err
	}
	for _, w := range want {
		switch {
		case w.may && strings.Contains(replies[0], "not the fast path"):
			replies = replies[len(w.replies):]
			continue
		case w.may:
			c.entries++
		case w.fast:
			c.fast++
		}
		for i, is := range replies[:len(w.replies)] {
			if strings.HasPrefix(is, "-error") && w.replies[0] == "-" && i == 0 {
				continue
			}
			if is != w.replies[i] {
				return fmt.Errorf("%s: %d of %d:\nLua %q\nGo  %q", w.what, i, len(w.replies), is, w.replies[i])
			}
		}
		replies = replies[len(w.replies):]
	}
	return nil
}

// textCall is a call of one of the texts.
type textCall struct {
	*call
	script string
}

func (c *textCall) append(args []any) []any {
	args = append(args, c.script, len(c.Values), c.expiry)
	for _, value := range c.Values {
		if value == nil {
			args = append(args, "-")
		} else {
			args = append(args, "+"+string(value))
		}
	}
	args = append(args, len(c.Args)+1)
	for _, arg := range c.Args {
		args = append(args, arg)
	}
	return append(args, c.Now)
}

// general is the call on the general path.
func (c *call) general() *call {
	other := *c
	other.Args = append([]string{}, c.Args...)
	numbers := []byte(c.Args[0])
	extra := int64(math.Float64frombits(binary.LittleEndian.Uint64(numbers[state.NumberExtra:])))
	state.PutDouble(numbers[state.NumberExtra:], extra-state.FastTake)
	other.Args[0] = string(numbers)
	return &other
}

// decide returns what the call has to reply and to leave, and leaves that to the next.
func (c *comparison) decide(call *call) []string {
	decide := map[string]func(state.Call) (state.Reply, error){
		"take": state.Take, "settle": state.Settle, "adjust": state.Adjust,
		"override": state.Override, "usage": state.Usage, "exchange": state.Exchange, "heartbeat": state.Heartbeat,
	}[call.script]
	values := slices.Clone(call.Values)
	expiries := make([]int64, len(values))
	call.Deadlines = true
	reply, err := decide(call.Call)
	replies := []string{"-"}
	if err == nil {
		replies[0] = "+" + string(reply.Text)
		c.outcomes[fmt.Sprint(call.script, " ", reply.Text[0])]++
	} else {
		c.errors++
	}
	for i := range expiries {
		expiries[i] = call.expiry
	}
	for _, w := range reply.Writes {
		values[w.Key] = w.Value
		switch w.Expiry {
		case 0:
		case state.Forever:
			// As Redis says it.
			expiries[w.Key] = -1
		default:
			expiries[w.Key] = w.Expiry
		}
	}
	for i, value := range values {
		if value == nil {
			replies = append(replies, "")
		} else {
			replies = append(replies, fmt.Sprint(expiries[i], " ", string(value)))
		}
		*call.places[i] = value
	}
	return replies
}

func comparisonSeed(t testing.TB) uint64 {
	t.Helper()
	switch value := os.Getenv("TEST_SEED"); value {
	case "":
		return 1
	case "random":
		return rand.Uint64()
	default:
		seed, err := strconv.ParseUint(value, 10, 64)
		require.NoError(t, err)
		return seed
	}
}

func startRedis(t testing.TB) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr, ReadTimeout: time.Minute, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestGoAndBothPathsOfTheScriptsDecideAndStoreTheSameBytes(t *testing.T) {
	t.Parallel()
	c := newComparison(t, startRedis(t))
	for first := uint64(0); c.calls < *comparedCalls; first += batch {
		require.NoError(t, c.run(first))
	}
	require.Greater(t, c.fast, c.calls/20, "fast.lua is compared as well")
	require.Greater(t, c.entries, c.calls/20, "and where it goes entry by entry")
	t.Logf("%d calls, %d of them by fast.lua too, and %d by entries, %d errors; script and outcome: %v", c.calls, c.fast, c.entries, c.errors, c.outcomes)
}

// mutant is a mistake in a script: one text in the place of another.
type mutant struct{ script, is, becomes string }

var commonMutants = []mutant{
	{"take", "full = full + -full % 1", "full = full - full % 1"},
	{"take", "charge == 0 or debt + charge <= full", "charge == 0 or debt + charge < full"},
	{"take", "elapsed < 0 then", "elapsed < -1 then"},
	{"take", "if d3 < 0 then d3 = 0 end", ""},
	{"take", "return (a - rest) / b + 1", "return (a - rest) / b"},
	{"take", "e.tag == TOKEN and e.date - now > AHEAD", "e.tag == TOKEN and e.date - now > AHEAD + 1"},
	{"take", "or 2 * e.length) + AHEAD", "or e.length) + AHEAD"},
	{"take", "limit.r / limit.p >= e.r / e.p", "limit.r / limit.p > 2 * e.r / e.p"},
	{"take", "return limit.debt * limit.p + limit.previous * overlap(limit)", "return limit.debt * limit.p"},
	{"take", "2 * limit.capacity * limit.one - debt", "2 * limit.capacity * limit.one - debt - 1"},
	{"take", "other.finish > limit.finish then", "other.finish < limit.finish then"},
	{"take", "return e.finish + e.length", "return e.finish"},
	{"take", "deadline > last and deadline or deadline + CODE_STEPS * unit", "deadline"},
	{"take", "if deadline <= last then deadline = deadline + CODE_STEPS * unit end", ""},
	{"take", "deadline - now >= full and", "deadline - now >= full / 2 and"},
	{"take", "deadline - now <= 2 * full + DEADLINE_ROOM", "deadline - now <= 2 * full"},
	{"take", "deadline = deadline - deadline % unit + unit", "deadline = deadline - -deadline % unit + unit"},
	{"take", "length ~= p or rate ~= r or date > now", "date > now"},
	{"take", "closes - now > r + AHEAD", "closes - now > 2 * r + AHEAD"},
	{"take", "to and closes > now and closes ~= to", "to and closes > now and closes < to"},
	{"take", "state and after <= #state", "false"},
	{"take", "ends = date + ends + -ends % 1", "ends = date + ends - ends % 1"},
	{"take", "ends > last and ends or last", "ends"},
	{"take", "frexp(full / UNITS_LEFT)", "frexp(full)"},
	{"take", "deadline >= expiry", "deadline > expiry"},
	{"take", "deadline - expiry <= expiry - date + DEADLINE_ROOM", "deadline - expiry < expiry - date + DEADLINE_ROOM"},
	{"take", "date >= owner.dated", "date > owner.dated"},
	{"take", "frexp((expiry - date) / UNITS_LEFT)", "frexp(expiry - date)"},
	{"take", "limit.debt > MAX_FAST_DEBT", "limit.debt > 2 * MAX_FAST_DEBT"},
	{"take", "rules < RUN_AGAIN", "rules <= RUN_AGAIN"},
	{"take", "finish = nil", ""},
	{"take", "leased > now", "leased >= now"},
	{"take", "limit.lenient then\nshort = short .. pack(SHORT_FORMAT, k - 1, 0)", "limit.lenient then\nshort = short .. pack(SHORT_FORMAT, k, 0)"},
	{"take", "now < since or now >= till", "now < since or now > till"},
	{"take", ` and expected ~= '\255\255\255\255\255\255\255\255'`, ""},
	{"settle", "now - taken >= MARKER_LIFE", "now - taken > MARKER_LIFE"},
	{"settle", "local most = 2 * limit.capacity", "local most = limit.capacity"},
	{"settle", "limit.other.tag == TOKEN and limit.units <= limit.full", "limit.units <= limit.full"},
	{"adjust", "amount = min(amount, limit.tokens)", ""},
	{"adjust", "floor(rest * e.length / covered)", "floor(rest * e.length / covered) + 1"},
	{"adjust", "e.debt = e.debt + e.repaid", ""},
	{"take", "elseif counted > 0 then", "end\nif counted > 0 and outcome ~= LIMITED then"},
	{"take", "now >= hour + COUNT_HOUR", "now > hour + COUNT_HOUR"},
	{"take", "counted > 0 then\ntally(counted, plain, 3 + owners, hour, now, points,", "counted > 0 then\ntally(counted, plain, 3 + owners, hour, 0 + hour, points,"},
	{"take", "used + #name <= MOST_COUNT", "used + #name < MOST_COUNT"},
	{"take", "a < EXACT and a or EXACT", "a"},
	{"take", "(ends > now and ends or now)", "now"},
	{"take", "#was < COUNT_SIZE then", "#was == 0 then"},
	{"settle", "date % COUNT_HOUR, date, a,", "date % COUNT_HOUR, date - date % COUNT_HOUR, a,"},
	{"settle", "back + rest > 0 then", "back > 0 then"},
	{"usage", "value ~= ARGV[1 + i]", "not value"},
	{"take", "scale * limit.full - limit.held", "scale * limit.full"},
	{"take", "now >= e.till + LEASE_FORGOTTEN", "now >= e.till"},
	{"settle", "limit.base or limit.r", "limit.r"},
	{"exchange", "min(call[n + 1], mine.capacity)", "call[n + 1]"},
	{"exchange", "limit.taken - capacity, limit.flow - rate", "limit.taken, limit.flow - rate"},
	{"exchange", "min(limit.debt + capacity + owed, EXACT) - more", "min(limit.debt + owed, EXACT) - more"},
	{"exchange", "left - ceil_div(limit.size, 4)", "left"},
	{"exchange", "limit.whole - limit.flow))", "limit.whole))"},
	{"exchange", "has - sum.wanted))", "has))"},
	{"exchange", "capacity - more - limit.debt", "capacity - more"},
	{"exchange", "limit.finish == mine.window", "true"},
	{"exchange", "floor(left / (4 * holders))", "floor(left / holders)"},
	{"exchange", "number > last + 1", "number > last + 2"},
	{"exchange", "if last ~= number then", "if true then"},
	{"exchange", "limit.units > limit.full", "limit.units > 2 * limit.full"},
	{"exchange", "h.count == 0 and limit.taken", "limit.taken"},
	{"settle", "holder ~= attempt or finish <= now", "holder ~= attempt or finish < now"},
	{"settle", "final == RUNNING then", "false then"},
	{"override", "expires == 0 or expires > now", "expires == 0 or expires >= now"},
	{"override", "#kept - 1 > extra", "#kept > extra"},
	{"override", "#text > MAX_OVERRIDE_BYTES", "#text >= MAX_OVERRIDE_BYTES"},
	{"heartbeat", "heard > now - extra", "heard >= now - extra"},
	{"heartbeat", "for i = first, #living", "for i = 1, #living"},
	{"heartbeat", "#living - MAX_INSTANCES)", "#living - MAX_INSTANCES + 1)"},
}

// rareMutants are those that fewer than one of ten thousand calls shows: make test-long looks for them.
var rareMutants = []mutant{
	{"take", "if code >= CODE_STEPS then\nlocal step", "if code > CODE_STEPS then\nlocal step"},
	{"take", "if code >= CODE_STEPS then\nlocal unit", "if code > CODE_STEPS then\nlocal unit"},
	{"take", "previous, debt, closes = debt, 0, closes + length", "debt = 0"},
	{"take", "level = debt * p + previous * overlap", "level = debt * p"},
	{"take", "o == live and 0 or k + 1,", "k + 1,"},
}

// shownLate has the chain, counted from the first one, that shows a mistake which few calls show. It saves the search
// through those before it. Where it shows the mistake no more, because the calls are drawn in another way, the search is made.
var shownLate = map[mutant]uint64{
	{"override", "expires == 0 or expires > now", "expires == 0 or expires >= now"}:                16720,
	{"take", "#was < COUNT_SIZE then", "#was == 0 then"}:                                           13320,
	{"take", "closes - now > r + AHEAD", "closes - now > 2 * r + AHEAD"}:                           7360,
	{"adjust", "amount = min(amount, limit.tokens)", ""}:                                           7200,
	{"take", "limit.r / limit.p >= e.r / e.p", "limit.r / limit.p > 2 * e.r / e.p"}:                3160,
	{"take", "length ~= p or rate ~= r or date > now", "date > now"}:                               1400,
	{"heartbeat", "heard > now - extra", "heard >= now - extra"}:                                   1200,
	{"take", "elapsed < 0 then", "elapsed < -1 then"}:                                              1120,
	{"take", "used + #name <= MOST_COUNT", "used + #name < MOST_COUNT"}:                            1000,
	{"take", "ends = date + ends + -ends % 1", "ends = date + ends - ends % 1"}:                    1000,
	{"exchange", "ends + LEASE_MARGIN <= now and order", "order"}:                                  920,
	{"override", "#text > MAX_OVERRIDE_BYTES", "#text >= MAX_OVERRIDE_BYTES"}:                      800,
	{"override", "#kept - 1 > extra", "#kept > extra"}:                                             800,
	{"take", "deadline - now <= 2 * full + DEADLINE_ROOM", "deadline - now <= 2 * full"}:           800,
	{"exchange", "extra + ceil_div(extra, LEASE_DRIFT - 1)", "extra"}:                              720,
	{"take", "to and closes > now and closes ~= to", "to and closes > now and closes < to"}:        640,
	{"exchange", "if last ~= number then", "if true then"}:                                         520,
	{"settle", "holder ~= attempt or finish <= now", "holder ~= attempt or finish < now"}:          520,
	{"exchange", "h.count == 0 and limit.taken", "limit.taken"}:                                    520,
	{"take", "date >= owner.dated", "date > owner.dated"}:                                          480,
	{"take", "limit.debt > MAX_FAST_DEBT", "limit.debt > 2 * MAX_FAST_DEBT"}:                       400,
	{"take", "2 * limit.capacity * limit.one - debt", "2 * limit.capacity * limit.one - debt - 1"}: 320,
	{"take", "or 2 * e.length) + AHEAD", "or e.length) + AHEAD"}:                                   320,
	{"take", "leased > now", "leased >= now"}:                                                      280,
	{"exchange", "number > last + 1", "number > last + 2"}:                                         240,
	{"exchange", "has - sum.wanted))", "has))"}:                                                    240,
	{"take", "charge == 0 or debt + charge <= full", "charge == 0 or debt + charge < full"}:        240,
}

func TestAMistakeInAScriptIsFound(t *testing.T) {
	t.Parallel()
	mutants := commonMutants
	if *allMutants {
		mutants = slices.Concat(commonMutants, rareMutants)
	}
	areFound(t, mutants, 0)
}
