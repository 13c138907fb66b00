package digest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/event"
)

func TestOperationsThatAreAlikeAreOneRecord(t *testing.T) {
	t.Parallel()
	c := collector(t, digest.Config{Users: digest.Plain})
	v := asked("acme")
	v.User, v.SubjectTier, v.RootFields, v.Document = "mira", "pro", []string{"Query.a", "Query.b"}, "doc"
	v.Units[0] = event.Amount{Unit: "exports", N: 2}
	c.Count(v)
	v.At = noon.Add(time.Millisecond)
	v.Refused, v.Outcome = true, "limited"
	c.Count(v)
	v.Cost++
	c.Count(v)
	v.Outcome = "replayed"
	c.Count(v)
	chunk := c.Collect(noon).Chunk
	like := digest.Record{
		Tenant: "acme", User: "mira", Tier: "pro", Fields: []string{"Query.a", "Query.b"}, Document: "doc",
		Cost: 3, Units: []event.Amount{{Unit: "exports", N: 2}}, N: 2, Refused: 1,
	}
	dearer := like
	dearer.Cost, dearer.N = 4, 1
	require.Equal(t, []digest.Record{like, dearer}, chunk.Records)
	require.Equal(t, []time.Time{noon, noon.Add(time.Millisecond)}, []time.Time{chunk.From, chunk.To})
	require.InDelta(t, 1, chunk.Share(), 0)
	require.True(t, chunk.Has(digest.HashTenant(nil, "acme")))
	require.Nil(t, c.Collect(noon).Chunk)

	var again digest.Chunk
	require.NoError(t, again.Decode(chunk.Encode()))
	require.Equal(t, *chunk, again)
}

func TestATenantWithManyKindsOfOperationsTakesAQuarterOfTheRecords(t *testing.T) {
	t.Parallel()
	c := collector(t, digest.Config{Records: 8})
	for i := range 100 {
		v := asked("loud")
		v.Cost = int64(i)
		c.Count(v)
	}
	c.Count(asked("quiet"))
	chunk := c.Collect(noon).Chunk
	require.Len(t, chunk.Records, 4)
	n, cost := int64(0), int64(0)
	for _, r := range chunk.Records {
		if r.Tenant != "loud" {
			continue
		}
		n += r.N
		if r.Mixed {
			cost = r.Cost
			require.Empty(t, r.User)
			require.Empty(t, r.Fields)
		}
	}
	require.Equal(t, int64(100), n)
	require.InDelta(t, 50, cost, 1)
}

// TestWhatIsRecordedOfATenantIsAllOfIt draws fleets of tenants and looks whether each that a chunk has is complete in it.
func TestWhatIsRecordedOfATenantIsAllOfIt(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	key := []byte("a key of sixteen or more bytes")
	c := collector(t, digest.Config{Records: 32, Tenants: 400, Key: key})
	narrow, recorded := false, 0
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
			c.Count(v)
		}
		chunk := c.Collect(noon.Add(time.Duration(second) * time.Second)).Chunk
		if chunk == nil {
			continue
		}
		require.LessOrEqual(t, len(chunk.Records), 32)
		got := map[string]int64{}
		for _, r := range chunk.Records {
			got[r.Tenant] += r.N
		}
		for tenant, n := range want {
			if chunk.Has(digest.HashTenant(key, tenant)) {
				require.Equal(t, n, got[tenant], "%s in second %d", tenant, second)
				recorded++
			} else {
				require.Zero(t, got[tenant], "%s in second %d", tenant, second)
			}
		}
		narrow = narrow || chunk.Share() < 0.2
		if second == 199 {
			require.InDelta(t, 1, chunk.Share(), 0, "with few tenants all are recorded again")
		}
	}
	require.True(t, narrow)
	require.Greater(t, recorded, 300)
}

func TestASketchIsExactWhileItIsSmallAndATenthOffWhenItIsNot(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	var all, halves digest.Sketch
	parts := [2]digest.Sketch{}
	for n := 1; n <= 100_000; n++ {
		hash := random.Uint64()
		all.Add(hash)
		all.Add(hash)
		parts[n%2].Add(hash)
		if n < digest.SketchSize {
			require.InDelta(t, n, all.Count(), 0)
		}
	}
	require.InEpsilon(t, 100_000, all.Count(), 0.3)
	halves.Merge(&parts[0])
	halves.Merge(&parts[1])
	halves.Merge(&all)
	require.InDelta(t, all.Count(), halves.Count(), 0, "merged sketches count nobody twice")

	text, err := all.MarshalText()
	require.NoError(t, err)
	var read digest.Sketch
	require.NoError(t, read.UnmarshalText(text))
	require.Equal(t, all, read)
	for _, hostile := range []string{"!", "AAAA", string(make([]byte, 1<<20)), string(text) + string(text)} {
		require.Error(t, read.UnmarshalText([]byte(hostile)))
		require.LessOrEqual(t, read.Count(), 100_000*1.3)
	}
}

func FuzzDecode(f *testing.F) {
	c, err := digest.New(digest.Config{})
	if err != nil {
		f.Fatal(err)
	}
	c.Count(asked("acme"))
	c.Observe(f.Context(), refused("id", "acme"))
	batch := c.Collect(noon)
	f.Add(batch.Digest.Encode())
	f.Add(batch.New[0].Encode())
	f.Add(batch.Chunk.Encode())
	f.Fuzz(func(t *testing.T, text []byte) {
		var d digest.Digest
		if d.Decode(text) == nil {
			sum := digest.Merge([]digest.Digest{d, d})
			require.GreaterOrEqual(t, sum.Recent.Decisions, int64(0))
			require.GreaterOrEqual(t, sum.Groups.Users.NewlyRefusedShare(), 0.0)
		}
		var chunk digest.Chunk
		if chunk.Decode(text) == nil {
			require.GreaterOrEqual(t, chunk.Share(), 0.0)
		}
		_ = new(digest.Refusal).Decode(text)
	})
}

func BenchmarkCount(b *testing.B) {
	c := collector(b, digest.Config{})
	v := asked("acme")
	v.User, v.RootFields = "mira", []string{"Query.search"}
	b.ReportAllocs()
	for b.Loop() {
		c.Count(v)
	}
}

// BenchmarkCollect says what a second with so many tenants takes the goroutine that writes.
func BenchmarkCollect(b *testing.B) {
	c := collector(b, digest.Config{})
	verdicts := make([]event.Verdict, 2000)
	for i := range verdicts {
		verdicts[i] = asked(fmt.Sprint("tenant-", i))
		verdicts[i].User = fmt.Sprint("user-", i)
	}
	now := noon
	for b.Loop() {
		b.StopTimer()
		for _, v := range verdicts {
			c.Count(v)
		}
		now = now.Add(time.Second)
		b.StartTimer()
		batch := c.Collect(now)
		_ = batch.Digest.Encode()
	}
}
