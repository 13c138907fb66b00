package report

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/event"
)

var noon = time.Date(2026, time.November, 22, 12, 0, 0, 0, time.UTC)

// asked is a decision about an operation of a tenant.
func asked(tenant string) event.Verdict {
	return event.Verdict{At: noon, Tenant: tenant, Tier: "free", Outcome: "admitted", Cost: 3, Charged: 3}
}

// collected returns what a counter has counted, as a reader gets it.
func collected(t testing.TB, c *counter) Activity {
	t.Helper()
	a := Activity{Version: Version, Instance: "one"}
	c.collect(&a)
	var read Activity
	require.NoError(t, read.decode(a.encode()))
	return read
}

func countAll(c *counter, all ...event.Verdict) {
	for i := range all {
		c.count(&all[i])
	}
}

func TestCountIsExactBesideCollect(t *testing.T) {
	t.Parallel()
	c := newCounter(names{})
	var asking sync.WaitGroup
	sum, done := make(chan Activity, 1), make(chan struct{})
	go func() {
		all := Activity{}
		for {
			a := Activity{}
			select {
			case <-done:
				c.collect(&a)
				all.Total = all.Total.Plus(a.Total)
				sum <- all
				return
			default:
				c.collect(&a)
				all.Total = all.Total.Plus(a.Total)
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
				c.count(&v)
			}
		})
	}
	asking.Wait()
	close(done)
	a := <-sum
	require.Equal(t, Counts{Decisions: 8000, Refused: 1000, WouldRefuse: 1000, Cost: 24_000, Charged: 21_000}, a.Total)
	require.InDelta(t, 0.125, a.Total.RefusedShare(), 1e-9)
}

func TestCount(t *testing.T) {
	t.Parallel()
	t.Run("a request to validate only is no decision", func(t *testing.T) {
		t.Parallel()
		c, v := newCounter(names{}), asked("acme")
		v.Outcome = "validated"
		c.count(&v)
		require.Zero(t, collected(t, c).Total)
	})
	t.Run("tenants and operations", func(t *testing.T) {
		t.Parallel()
		c, v := newCounter(names{}), asked("acme")
		v.RootFields = []string{"Query.a", "Query.b"}
		countAll(c, v, v, asked("globex"))
		a := collected(t, c)
		require.Equal(t, []Tenant{
			{"acme", "free", Counts{Decisions: 2, Cost: 6, Charged: 6}}, {"globex", "free", Counts{Decisions: 1, Cost: 3, Charged: 3}},
		}, a.Tenants)
		require.Equal(t, []Operation{
			{"Query.a", Counts{Decisions: 2, Cost: 6, Charged: 6}}, {"Query.b", Counts{Decisions: 2, Cost: 6, Charged: 6}},
		}, a.Operations)
		require.Empty(t, collected(t, c).Tenants, "each decision is told once")
	})
	t.Run("a busy tenant keeps its place", func(t *testing.T) {
		t.Parallel()
		c := newCounter(names{})
		refused := int64(0)
		for second := range 12 {
			for i := range 4000 {
				countAll(c, asked(fmt.Sprintf("once-%d-%d", second, i)))
				if i%20 == 0 {
					v := asked("often")
					v.Refused = true
					countAll(c, v)
				}
			}
			a := collected(t, c)
			require.Equal(t, int64(4200), a.Total.Decisions, "the sum is exact")
			require.LessOrEqual(t, len(a.Tenants), 3*listed)
			require.Positive(t, a.Unlisted)
			for _, tenant := range a.Tenants {
				if tenant.Name == "often" {
					refused += tenant.Refused
				}
			}
		}
		require.GreaterOrEqual(t, refused, int64(11*200), "in its first second it may have found no room")
	})
}

func TestCountAllocatesNothingForKnownTenants(t *testing.T) {
	c, v := newCounter(names{}), asked("acme")
	v.User, v.RootFields = "mira", []string{"Query.search"}
	count := func() {
		for range 100 {
			c.count(&v)
		}
	}
	count()
	collected(t, c)
	count()
	collected(t, c)
	require.Zero(t, testing.AllocsPerRun(10, count))
}

func TestSampleJoinsEqualOperations(t *testing.T) {
	t.Parallel()
	c := newCounter(names{users: Plain})
	v := asked("acme")
	v.User, v.SubjectTier, v.RootFields, v.Document = "mira", "pro", []string{"Query.a", "Query.b"}, "doc"
	v.Units[0] = event.Amount{Unit: "exports", N: 2}
	c.count(&v)
	v.At = noon.Add(time.Millisecond)
	v.Refused, v.Outcome = true, "limited"
	c.count(&v)
	v.Cost++
	c.count(&v)
	v.Outcome = "replayed"
	c.count(&v)
	sample := collected(t, c).Sample
	like := Record{
		Tenant: "acme", User: "mira", Tier: "pro", Fields: []string{"Query.a", "Query.b"}, Document: "doc",
		Cost: 3, Units: []event.Amount{{Unit: "exports", N: 2}}, N: 2, Refused: 1,
	}
	dearer := like
	dearer.Cost, dearer.N = 4, 1
	require.Equal(t, []Record{like, dearer}, sample.Records)
	require.Equal(t, []time.Time{noon, noon.Add(time.Millisecond)}, []time.Time{sample.From, sample.To})
	require.True(t, sample.Has(HashTenant(nil, "acme")))
	require.Nil(t, collected(t, c).Sample)
}

func TestSampleMixesTheKindsOfOneTenant(t *testing.T) {
	t.Parallel()
	c := newCounter(names{})
	for i := range 100 {
		v := asked("loud")
		v.Cost = int64(i)
		c.count(&v)
	}
	countAll(c, asked("quiet"))
	sample := collected(t, c).Sample
	require.LessOrEqual(t, len(sample.Records), kindsOfTenant+2)
	n, mixed := int64(0), false
	for _, r := range sample.Records {
		if r.Tenant == "loud" {
			n += r.N
			mixed = mixed || r.Mixed
		}
	}
	require.Equal(t, int64(100), n)
	require.True(t, mixed)
}

// TestSampleHasAllOfATenant draws fleets of tenants, and looks whether each tenant that a sample has is complete in it.
func TestSampleHasAllOfATenant(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	key := []byte("a key of sixteen or more bytes")
	c := newCounter(names{key: key})
	narrow, sampled := false, 0
	for second := range 200 {
		want := map[string]int64{}
		tenants := 1 + random.IntN(500)
		if second > 100 {
			tenants = 3
		}
		for range random.IntN(2000) {
			v := asked(fmt.Sprint("tenant-", random.IntN(tenants)))
			v.Cost = int64(random.IntN(4))
			want[v.Tenant]++
			c.count(&v)
		}
		sample := collected(t, c).Sample
		if sample == nil {
			continue
		}
		require.LessOrEqual(t, len(sample.Records), maxRecords)
		got := map[string]int64{}
		for _, r := range sample.Records {
			got[r.Tenant] += r.N
		}
		for tenant, n := range want {
			if sample.Has(HashTenant(key, tenant)) {
				require.Equal(t, n, got[tenant], "%s in second %d", tenant, second)
				sampled++
			} else {
				require.Zero(t, got[tenant], "%s in second %d", tenant, second)
			}
		}
		narrow = narrow || sample.Below < everybody/3
		if second == 199 {
			require.Equal(t, uint64(everybody), sample.Below, "with few tenants all are sampled again")
		}
	}
	require.True(t, narrow)
	require.Greater(t, sampled, 300)
}

// carrying is the detail of an operation.
type carrying struct {
	parts   []event.Part
	carried []event.Carried
}

func (d carrying) Parts() []event.Part { return d.parts }

func (d carrying) Carried() []event.Carried { return slices.Clone(d.carried) }

// calling is an operation that calls two root fields.
func calling(tenant, lang string) event.Verdict {
	v := asked(tenant)
	v.RootFields = []string{"Query.a", "Query.b"}
	v.Detail = carrying{
		parts:   []event.Part{{Calls: 2}, {Calls: 0}},
		carried: []event.Carried{{Parameter: "claim:plan"}, {Parameter: "header:X-Lang", Value: lang}},
	}
	return v
}

func TestSampleHasPartsAndHashesOfParameters(t *testing.T) {
	t.Parallel()
	key := []byte("a key of sixteen bytes")
	c := newCounter(names{key: key})
	countAll(c, calling("acme", "secret-token"), calling("acme", "secret-token"), calling("acme", "de"))
	a := Activity{}
	c.collect(&a)
	require.Equal(t, []string{"claim:plan", "header:X-Lang"}, a.Sample.Parameters)
	values := map[string]int64{}
	for _, r := range a.Sample.Records {
		require.Equal(t, []Part{{N: 2}, {}}, r.Parts)
		require.Len(t, r.Carried, 1, "what was not carried takes no room")
		values[r.Carried["header:X-Lang"]] = r.N
	}
	require.Equal(t, map[string]int64{HashValue(key, "header:X-Lang", "secret-token"): 2, HashValue(key, "header:X-Lang", "de"): 1}, values)
	text, err := json.Marshal(a)
	require.NoError(t, err)
	require.NotContains(t, string(text), "secret")
	require.Equal(t, HashKey(key), a.Sample.Key)

	// A parameter stands in a sample only if all operations were asked for it.
	other := calling("globex", "de")
	other.Detail = carrying{carried: []event.Carried{{Parameter: "header:X-Lang", Value: "de"}, {Parameter: "path:2", Value: "s"}}}
	countAll(c, calling("acme", "de"), other, asked("initech"))
	require.Equal(t, []string{"header:X-Lang"}, collected(t, c).Sample.Parameters)
}

func TestHostileNamesAreCutEscapedAndBounded(t *testing.T) {
	t.Parallel()
	n := names{users: Plain}
	c := newCounter(n)
	long := strings.Repeat("\u202e\x1b[2J\xff\"\\", 10_000)
	for i := range 600 {
		v := calling(fmt.Sprint(i)+long, long)
		v.User, v.Team, v.SubjectTier, v.Document, v.RootFields = long, long, long, long, []string{long[:100]}
		v.Units[0] = event.Amount{Unit: long[:64], N: 1}
		c.count(&v)
	}
	a := collected(t, c)
	require.Equal(t, int64(600), a.Total.Decisions)
	d := event.Decided{RefusalID: "id", Tenant: long, User: long[:256], Team: long[:256], Operation: long[:64]}
	for range 500 {
		d.RootFields = append(d.RootFields, "Query.f")
		d.Limits = append(d.Limits, event.LimitState{Level: "user", Owner: long[:256], Refuses: true, Exceeded: true, Origin: &event.Origin{
			Overrides: []event.Override{{Reason: long, Actor: long}, {Reason: long, Actor: long}},
		}})
	}
	r := n.refusal(d, Policy{Reason: "why"})
	text, ok := r.encode()
	require.True(t, ok)
	require.LessOrEqual(t, len(text), maxRefusal)
	require.True(t, r.Shortened)
	activity, err := json.Marshal(a)
	require.NoError(t, err)
	for _, text := range []string{string(text), string(activity)} {
		require.NotContains(t, text, `\u001b`)
		require.NotContains(t, text, "\u202e")
	}
}

func TestNamesOfUsers(t *testing.T) {
	t.Parallel()
	key := []byte("0123456789abcdef")
	d := event.Decided{
		RefusalID: "id", Tenant: "acme", Team: "blue", User: "mira",
		Limits: []event.LimitState{
			{Level: "user", Owner: "mira"},
			{Level: "operation", Owner: "Query.a", Part: "mira"},
			{Level: "team", Owner: "blue", Origin: &event.Origin{Overrides: []event.Override{{Level: "user", Owner: "mira"}}}},
		},
	}
	hash := HashUser(key, "acme", "mira")
	require.NotEqual(t, hash, HashUser(key, "globex", "mira"))
	require.NotEqual(t, hash, HashUser(nil, "acme", "mira"))
	for name, c := range map[string]struct {
		users       Names
		hides       bool
		user, team  string
		mentionsRaw bool
	}{
		"hashed by default":    {Hashed, false, hash, "blue", false},
		"plain":                {Plain, false, "mira", "blue", true},
		"omitted":              {Omitted, false, "", "blue", false},
		"hidden by the policy": {Plain, true, hash, HashUser(key, "acme", "team\x00blue"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, d := names{key, c.users}, d
			d.Hides.Owners = c.hides
			r := n.refusal(d, Policy{})
			require.Equal(t, []string{c.user, c.user, c.user, c.team}, []string{r.User, r.Limits[0].Owner, r.Limits[1].Part, r.Team})
			v := asked("acme")
			v.Team, v.User, v.HideOwners = "blue", "mira", c.hides
			counter := newCounter(n)
			counter.count(&v)
			record := collected(t, counter).Sample.Records[0]
			require.Equal(t, []string{c.user, c.team}, []string{record.User, record.Team})
			text, _ := r.encode()
			require.Equal(t, c.mentionsRaw, strings.Contains(string(text), "mira"))
			if !c.hides {
				fact, _ := n.event(event.LimitReached{Budget: event.Budget{Tenant: "acme", Level: "user", Owner: "mira"}}).(event.LimitReached)
				require.Equal(t, c.user, fact.Owner)
			}
		})
	}
	require.Equal(t, "mira", d.Limits[0].Owner, "the event is that of others too")
}

func TestAllowanceOfATenant(t *testing.T) {
	t.Parallel()
	refused := func(tenant string) event.Decided {
		return event.Decided{RefusalID: "id", Code: "RATE_LIMITED", Tenant: tenant}
	}
	p, kept := newPending(), 0
	for range 1000 {
		if p.push(refused("loud"), noon) {
			kept++
		}
	}
	require.Equal(t, tenantBurst, kept)
	require.Equal(t, uint64(1000-tenantBurst), p.count())
	require.True(t, p.push(refused("quiet"), noon))
	require.False(t, p.push(refused("loud"), noon.Add(tenantPause-1)))
	require.True(t, p.push(refused("loud"), noon.Add(tenantPause)))
	require.True(t, p.push(refused("loud"), noon.Add(-24*time.Hour)), "a clock that was set back keeps nobody waiting")
	require.False(t, p.push(event.Decided{Outcome: "admitted"}, noon), "what ran is no refusal")

	p, kept = newPending(), 0
	for i := range 10 * maxPending {
		if p.push(refused(fmt.Sprint(i)), noon) {
			kept++
		}
	}
	require.Equal(t, maxPending, kept)
	require.Len(t, p.take(), maxPending)
	for i := range 10 * maxTenants {
		p.push(refused(fmt.Sprint(i)), noon.Add(time.Second))
		p.take()
	}
	require.LessOrEqual(t, len(p.spent), maxTenants+1)
	require.True(t, p.push(refused("late"), noon.Add(time.Hour)), "tenants are forgotten")
	require.Less(t, len(p.spent), maxTenants)
}

func TestDecodeActivity(t *testing.T) {
	t.Parallel()
	packed := func(text string) string {
		a := Activity{}
		require.NoError(t, json.Unmarshal([]byte(text), &a))
		return a.encode()
	}
	var a Activity
	require.NoError(t, a.decode(packed(`{"version":1,"instance":"a","later":{"x":[1]},"total":{"decisions":3,"later":1}}`)))
	require.Equal(t, int64(3), a.Total.Decisions)
	for _, text := range []string{
		"", "no deflate", packed(`{"version":2,"instance":"a"}`), packed(`{}`), packed(`{"version":1,"instance":"a","total":{"decisions":-1}}`),
		packed(`{"version":1,"instance":"a","tenants":[` + strings.Repeat(`{},`, 3*listed) + `{}]}`),
		packed(`{"version":1,"instance":"a","sample":{"below":"1","records":[` + strings.Repeat(`{},`, maxRecords) + `{}]}}`),
	} {
		require.ErrorIs(t, a.decode(text), ErrUnreadable)
		require.Equal(t, "a", a.Instance, "what was read before stays")
	}
}

func FuzzDecode(f *testing.F) {
	c := newCounter(names{})
	countAll(c, asked("acme"))
	a := Activity{Version: Version, Instance: "one"}
	c.collect(&a)
	f.Add(a.encode())
	f.Fuzz(func(t *testing.T, packed string) {
		var a Activity
		if a.decode(packed) == nil {
			s := summing{tenants: make(map[string]*Tenant), operations: make(map[string]*Counts), runs: make(map[string]*Instance)}
			s.add(&a)
			s.add(&a)
			require.GreaterOrEqual(t, s.summary(noon).Recent.Decisions, int64(0))
		}
		_ = new(Refusal).decode([]byte(packed))
	})
}

func BenchmarkCount(b *testing.B) {
	c, v := newCounter(names{}), asked("acme")
	v.User, v.RootFields = "mira", []string{"Query.search"}
	b.ReportAllocs()
	for b.Loop() {
		c.count(&v)
	}
}
