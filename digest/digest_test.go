package digest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/event"
)

var noon = time.Date(2026, time.November, 22, 12, 0, 0, 0, time.UTC)

func collector(t testing.TB, cfg digest.Config) *digest.Collector {
	t.Helper()
	c, err := digest.New(cfg)
	require.NoError(t, err)
	return c
}

// asked is a decision about an operation of a tenant.
func asked(tenant string) event.Verdict {
	return event.Verdict{At: noon, Tenant: tenant, Tier: "free", Outcome: "admitted", Cost: 3, Charged: 3}
}

// denied is one that was refused.
func denied(tenant string) event.Verdict {
	return event.Verdict{At: noon, Tenant: tenant, Tier: "free", Outcome: "limited", Refused: true, Cost: 3}
}

func refused(id, tenant string) event.Decided {
	return event.Decided{
		At: noon, RefusalID: id, Outcome: "limited", Code: "RATE_LIMITED", Tenant: tenant, User: "mira", Tier: "free", Revision: 7, Cost: 11,
		Limits: []event.LimitState{{
			Level: "tenant", Limit: "minute", Unit: "points", Capacity: 10, Asked: 11, Exceeded: true, Refuses: true,
			Origin: &event.Origin{Rule: []string{"tiers.free.limits.minute"}, Line: 12},
		}},
	}
}

func TestEveryDecisionIsCountedOnceWhoeverAsksTogether(t *testing.T) {
	t.Parallel()
	c := collector(t, digest.Config{})
	var asking sync.WaitGroup
	collected, done := make(chan digest.Digest, 1), make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				collected <- c.Collect(noon.Add(time.Second)).Digest
				return
			default:
				c.Collect(noon)
			}
		}
	}()
	for i := range 8 {
		asking.Go(func() {
			for n := range 1000 {
				v := asked(fmt.Sprintf("tenant-%d", n%7))
				if i == 0 {
					v.Refused, v.Charged = true, 0
				}
				v.WouldRefuse = i == 1
				c.Count(v)
			}
		})
	}
	asking.Wait()
	close(done)
	d := <-collected
	want := digest.Counts{Decisions: 8000, Refused: 1000, WouldRefuse: 1000, Cost: 24_000, Charged: 21_000}
	require.Equal(t, want, d.Total)
	require.Equal(t, want, d.Recent)
	require.Len(t, d.Tenants, 7)
	sum := digest.Counts{}
	for _, tenant := range d.Tenants {
		sum = sum.Plus(tenant.Counts)
		require.Equal(t, "free", tenant.Tier)
	}
	require.Equal(t, want, sum)
	require.InDelta(t, 7, d.Groups.Tenants.Seen.Count(), 0)
	require.InDelta(t, 0.125, d.Recent.RefusedShare(), 1e-9)
}

func TestRequestsToValidateOnlyAreNoDecisions(t *testing.T) {
	t.Parallel()
	c := collector(t, digest.Config{})
	v := asked("acme")
	v.Outcome = "validated"
	c.Count(v)
	require.Zero(t, c.Collect(noon).Digest.Total.Decisions)
}

func TestWhatIsOlderThanTheWindowIsForgottenAndTheTotalIsNot(t *testing.T) {
	t.Parallel()
	c := collector(t, digest.Config{})
	c.Count(asked("early"))
	c.Collect(noon)
	for s := range 60 {
		c.Count(asked("late"))
		d := c.Collect(noon.Add(time.Duration(s+1) * time.Second)).Digest
		require.GreaterOrEqual(t, d.Recent.Decisions, int64(min(s+1, 50)))
		require.LessOrEqual(t, d.Recent.Decisions, int64(s+2))
	}
	d := c.Collect(noon.Add(61 * time.Second)).Digest
	require.Len(t, d.Tenants, 1)
	require.Equal(t, "late", d.Tenants[0].Name)
	require.Equal(t, int64(61), d.Total.Decisions)
	require.LessOrEqual(t, noon.Add(61*time.Second).Sub(d.RecentFrom), digest.Window)
	// A clock that was set back by a day does not keep the window for a day.
	d = c.Collect(noon.Add(-24 * time.Hour)).Digest
	require.Zero(t, d.Recent.Decisions)
}

func TestATenantThatAsksOftenIsCountedHoweverManyAskOnce(t *testing.T) {
	t.Parallel()
	c := collector(t, digest.Config{Tenants: 160, Top: 4})
	for second := range 12 {
		for i := range 2000 {
			c.Count(asked(fmt.Sprintf("once-%d-%d", second, i)))
			if i%20 == 0 {
				c.Count(denied("often"))
			}
		}
		c.Collect(noon.Add(time.Duration(second) * time.Second))
	}
	d := c.Collect(noon.Add(12 * time.Second)).Digest
	var often digest.Tenant
	for _, tenant := range d.Tenants {
		if tenant.Name == "often" {
			often = tenant
		}
	}
	// In its first second it may have found no room.
	require.GreaterOrEqual(t, often.Refused, int64(1100))
	require.LessOrEqual(t, len(d.Tenants), 4*4)
	require.Equal(t, int64(12*2100), d.Recent.Decisions, "the sum is exact")
	require.Positive(t, d.Unlisted)
	require.InEpsilon(t, 24_001, d.Groups.Tenants.Seen.Count(), 0.35)
}

func TestAnotherCandidateBeginsAtNothing(t *testing.T) {
	t.Parallel()
	c := collector(t, digest.Config{})
	try := func(id string, n int) {
		for i := range n {
			v := asked("acme")
			v.User, v.Candidate, v.CandidateRefuses = fmt.Sprint("user-", i), id, i%2 == 0
			c.Count(v)
		}
	}
	try("one", 10)
	d := c.Collect(noon).Digest
	require.Equal(t, "one", d.Candidate)
	require.Equal(t, []int64{10, 5}, []int64{d.Recent.Tried, d.Recent.NewlyRefused})
	require.InDelta(t, 0.5, d.Groups.Users.NewlyRefusedShare(), 1e-9)

	try("one", 2)
	try("two", 4)
	try("one", 100) // of operations that were under way
	d = c.Collect(noon.Add(time.Second)).Digest
	require.Equal(t, "two", d.Candidate)
	require.Equal(t, []int64{4, 2}, []int64{d.Recent.Tried, d.Recent.NewlyRefused})
	require.Equal(t, []int64{4, 2}, []int64{d.Total.Tried, d.Total.NewlyRefused})
	require.Equal(t, int64(116), d.Total.Decisions)
	require.InDelta(t, 2, d.Groups.Users.NewlyRefused.Count(), 0)

	// What the live policy refuses is not new.
	v := denied("acme")
	v.Candidate, v.CandidateRefuses = "two", true
	c.Count(v)
	require.Equal(t, int64(2), c.Collect(noon.Add(time.Second)).Digest.Recent.NewlyRefused)
}

func TestARefusalLeadsToTheRevisionAndWhoHasPublishedIt(t *testing.T) {
	t.Parallel()
	c := collector(t, digest.Config{})
	for n := range uint64(9) {
		c.Observe(t.Context(), event.PolicyApplied{At: noon, Revision: n, Hash: "sha256:ab", Author: "ada", Reason: fmt.Sprint("reason ", n)})
	}
	require.True(t, c.Keep(t.Context(), refused("id-1", "acme")))
	require.False(t, c.Keep(t.Context(), event.Decided{Outcome: "admitted"}), "what ran is no refusal")
	require.False(t, c.Keep(t.Context(), event.LimitReached{}))
	batch := c.Collect(noon)
	require.Len(t, batch.New, 1)
	r := batch.New[0]
	require.Equal(t, "id-1", r.Decided.RefusalID)
	require.Equal(t, "reason 7", r.Policy.Reason)
	require.Equal(t, "ada", r.Policy.Author)
	require.Equal(t, 12, r.Decided.Limits[0].Origin.Line)
	require.Equal(t, uint64(8), batch.Digest.Policy.Revision)

	var again digest.Refusal
	require.NoError(t, again.Decode(r.Encode()))
	require.Equal(t, r, again)
	require.Empty(t, c.Collect(noon).New, "once")
	require.Len(t, c.Kept(), 1)
}

func TestUsersAreHashedUnlessTheServerSaysOtherwiseAndAlwaysWhereThePolicyHidesThem(t *testing.T) {
	t.Parallel()
	key := []byte("0123456789abcdef")
	d := refused("id", "acme")
	d.Team, d.User = "blue", "mira"
	d.Limits = append(d.Limits,
		event.LimitState{Level: "user", Owner: "mira"}, event.LimitState{Level: "operation", Owner: "Query.a", Part: "mira"},
		event.LimitState{Level: "team", Owner: "blue", Origin: &event.Origin{Overrides: []event.Override{{Level: "user", Owner: "mira"}}}})
	hash := digest.HashUser(key, "acme", "mira")
	require.NotEqual(t, hash, digest.HashUser(key, "globex", "mira"))
	require.NotEqual(t, hash, digest.HashUser(nil, "acme", "mira"))
	for name, c := range map[string]struct {
		users       digest.Names
		hides       bool
		user, team  string
		mentionsRaw bool
	}{
		"by default":              {digest.Hashed, false, hash, "blue", false},
		"plain":                   {digest.Plain, false, "mira", "blue", true},
		"omitted":                 {digest.Omitted, false, "", "blue", false},
		"plain, and policy hides": {digest.Plain, true, hash, digest.HashUser(key, "acme", "team\x00blue"), false},
	} {
		col := collector(t, digest.Config{Users: c.users, Key: key})
		d.Hides.Owners = c.hides
		col.Observe(t.Context(), d)
		v := asked("acme")
		v.Team, v.User, v.HideOwners = "blue", "mira", c.hides
		col.Count(v)
		batch := col.Collect(noon)
		r := batch.New[0].Decided
		require.Equal(t, []string{c.user, c.user, c.user, c.team}, []string{r.User, r.Limits[1].Owner, r.Limits[2].Part, r.Team}, name)
		require.Equal(t, []string{c.user, c.team}, []string{batch.Chunk.Records[0].User, batch.Chunk.Records[0].Team}, name)
		all := string(batch.New[0].Encode()) + string(batch.Chunk.Encode()) + string(batch.Digest.Encode())
		require.Equal(t, c.mentionsRaw, strings.Contains(all, "mira"), name)
	}
	require.Equal(t, "mira", d.Limits[1].Owner, "the event is that of others too")
}

func TestWhoIsRefusedAllTheTimeHidesNobodyElsesRefusal(t *testing.T) {
	t.Parallel()
	c := collector(t, digest.Config{Refusals: 16})
	require.True(t, c.Keep(t.Context(), refused("mine", "acme")))
	seen := map[string]bool{}
	for i := range 400 {
		require.True(t, c.Keep(t.Context(), refused(fmt.Sprint("theirs-", i), "loud")))
		if i%100 == 99 {
			batch := c.Collect(noon)
			for _, r := range batch.New {
				seen[r.Decided.RefusalID] = true
			}
			for _, id := range batch.Gone {
				require.NotEqual(t, "mine", id)
				delete(seen, id)
			}
		}
	}
	kept := c.Kept()
	require.Len(t, kept, 16)
	require.Equal(t, "mine", kept[0].Decided.RefusalID)
	require.Equal(t, "theirs-399", kept[15].Decided.RefusalID)
	require.Len(t, seen, 16, "what was said to be new and gone comes to what is kept")
}

func TestWhatThereIsNoRoomForIsDroppedAndCounted(t *testing.T) {
	t.Parallel()
	c := collector(t, digest.Config{})
	dropped := 0
	for i := range 2000 {
		if !c.Keep(t.Context(), refused(fmt.Sprint(i), "acme")) {
			dropped++
		}
	}
	require.Equal(t, 2000-512, dropped)
	require.Equal(t, uint64(dropped), c.Collect(noon).Digest.Dropped)
	none := collector(t, digest.Config{Refusals: digest.None})
	require.False(t, none.Keep(t.Context(), refused("id", "acme")))
	require.Empty(t, none.Collect(noon).New)
}

func TestHostileNamesAreCutEscapedAndBounded(t *testing.T) {
	t.Parallel()
	c := collector(t, digest.Config{Users: digest.Plain, Top: 128, Records: 1024})
	long := strings.Repeat("\u202e\x1b[2J\xff\"\\", 10_000)
	for i := range 600 {
		v := asked(fmt.Sprint(i) + long)
		v.User, v.Team, v.SubjectTier, v.Document, v.RootFields = long, long, long, long, []string{long[:100]}
		v.Units[0] = event.Amount{Unit: long[:64], N: 1}
		c.Count(v)
	}
	d := refused("id", long)
	d.User, d.Team, d.Operation = long[:256], long[:256], long[:64]
	for range 500 {
		d.RootFields = append(d.RootFields, "Query.f")
		d.Limits = append(d.Limits, event.LimitState{Level: "user", Owner: long[:256], Refuses: true, Exceeded: true, Origin: &event.Origin{
			Overrides: []event.Override{{Reason: long, Actor: long}, {Reason: long, Actor: long}},
		}})
	}
	c.Observe(t.Context(), d)
	batch := c.Collect(noon)
	for what, text := range map[string][]byte{
		"digest": batch.Digest.Encode(), "refusal": batch.New[0].Encode(), "chunk": batch.Chunk.Encode(),
	} {
		most := map[string]int{"digest": digest.MaxDigest, "refusal": digest.MaxRefusal, "chunk": digest.MaxChunk}[what]
		require.LessOrEqual(t, len(text), most, what)
		var parsed any
		require.NoError(t, json.Unmarshal(text, &parsed), what)
		visit(parsed, func(s string) {
			require.NotContains(t, s, "\x1b", what)
			require.NotContains(t, s, "\u202e", what)
			require.LessOrEqual(t, len(s), 6000, what)
		})
	}
	require.True(t, batch.New[0].Shortened)
	require.NotEmpty(t, batch.Chunk.Records)
	require.Less(t, batch.Chunk.Share(), 1.0)
	var again digest.Digest
	require.NoError(t, again.Decode(batch.Digest.Encode()))
	require.Equal(t, int64(600), again.Recent.Decisions)
}

func visit(x any, see func(string)) {
	switch x := x.(type) {
	case string:
		see(x)
	case []any:
		for _, y := range x {
			visit(y, see)
		}
	case map[string]any:
		for k, y := range x {
			see(k)
			visit(y, see)
		}
	}
}

func TestNewFieldsAreIgnoredAndNewVersionsAreNotRead(t *testing.T) {
	t.Parallel()
	var d digest.Digest
	require.NoError(t, d.Decode([]byte(`{"version":1,"instance":"a","later":{"x":[1]},"recent":{"decisions":3,"later":1}}`)))
	require.Equal(t, int64(3), d.Recent.Decisions)
	for _, text := range []string{`{"version":2}`, `{}`, ``, `[]`, `{"version":1,"recent":{"decisions":"x"}}`, strings.Repeat(" ", digest.MaxDigest) + `{"version":1}`} {
		require.ErrorIs(t, d.Decode([]byte(text)), digest.ErrUnreadable)
		require.Equal(t, "a", d.Instance, "what was read before stays")
	}
}

func TestCountingAllocatesNothingForTenantsThatAskAgain(t *testing.T) {
	c := collector(t, digest.Config{})
	v := asked("acme")
	v.User, v.RootFields = "mira", []string{"Query.search"}
	count := func() {
		for range 100 {
			c.Count(v)
		}
	}
	count()
	c.Collect(noon)
	count()
	c.Collect(noon)
	require.Zero(t, testing.AllocsPerRun(10, count))
}

func TestEveryMistakeInAConfigurationIsReported(t *testing.T) {
	t.Parallel()
	_, err := digest.New(digest.Config{Users: 9, Key: []byte("short"), Tenants: -1, Top: 1000, Refusals: -2, Records: 5000})
	for _, field := range []string{"Users", "Key", "Tenants", "Top", "Refusals", "Records"} {
		require.ErrorContains(t, err, "Config."+field)
	}
	require.ErrorContains(t, err, "or None")
}

func TestADigestSaysWhichModeSwitchesItsInstanceApplies(t *testing.T) {
	t.Parallel()
	c := collector(t, digest.Config{})
	require.Nil(t, c.Collect(noon).Digest.Modes, "it follows none")
	c.Observe(t.Context(), event.ModeSwitched{At: noon, State: "current"})
	require.Equal(t, &digest.Modes{State: "current", Told: noon}, c.Collect(noon).Digest.Modes)
	eased := event.ModeSwitch{Tenant: "acme", AtMost: "shadow", Until: noon.Add(time.Minute), Reason: "loop\x1b[2J", By: "jo"}
	c.Observe(t.Context(), event.ModeSwitched{At: noon, State: "stale", Refused: 1, Error: "x", InForce: []event.ModeSwitch{eased}})
	eased.Reason = `loop\x1b[2J`
	want := &digest.Modes{State: "stale", Refused: 1, Error: "x", Told: noon, InForce: []event.ModeSwitch{eased}}
	require.Equal(t, want, c.Collect(noon).Digest.Modes)
	want.InForce = nil
	require.Equal(t, want, c.Collect(noon.Add(time.Minute)).Digest.Modes, "it has ended by itself")
}
