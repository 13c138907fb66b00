package digest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/event"
)

// told is the detail of an operation.
type told struct {
	parts   []event.Part
	carried []event.Carried
	// asked is how often somebody wanted to know.
	asked *int
}

func (d told) Parts() []event.Part {
	if d.asked != nil {
		*d.asked++
	}
	return d.parts
}

func (d told) Carried() []event.Carried { return slices.Clone(d.carried) }

// calling is an operation that calls two root fields.
func calling(tenant, lang string) event.Verdict {
	v := asked(tenant)
	v.RootFields = []string{"Query.a", "Query.b"}
	v.Detail = told{
		parts:   []event.Part{{Calls: 2}, {Calls: 0}},
		carried: []event.Carried{{Parameter: "claim:plan"}, {Parameter: "header:X-Lang", Value: lang}},
	}
	return v
}

func TestARecordHasThePartsOfAnOperationAndHashesOfWhatItCarried(t *testing.T) {
	t.Parallel()
	key := []byte("a key of sixteen bytes")
	c := collector(t, digest.Config{Key: key})
	c.Count(calling("acme", "secret-token"))
	c.Count(calling("acme", "secret-token"))
	c.Count(calling("acme", "de"))
	chunk := c.Collect(noon).Chunk
	require.True(t, chunk.Detailed)
	require.Equal(t, []string{"claim:plan", "header:X-Lang"}, chunk.Parameters)
	require.Len(t, chunk.Records, 2)
	values := map[string]int64{}
	for _, r := range chunk.Records {
		require.Equal(t, []digest.Part{{N: 2}, {}}, r.Parts)
		require.Len(t, r.Carried, 1, "what was not carried takes no room")
		values[r.Carried["header:X-Lang"]] = r.N
	}
	require.Equal(t, map[string]int64{
		digest.HashValue(key, "header:X-Lang", "secret-token"): 2, digest.HashValue(key, "header:X-Lang", "de"): 1,
	}, values)
	require.NotContains(t, string(chunk.Encode()), "secret")
	require.Equal(t, digest.HashKey(key), chunk.Key)
	require.NotEqual(t, digest.HashValue(key, "a", "b"), digest.HashValue(nil, "a", "b"))
	require.NotEqual(t, digest.HashValue(key, "a", "b"), digest.HashValue(key, "b", "b"))
	var again digest.Chunk
	require.NoError(t, again.Decode(chunk.Encode()))
	require.Equal(t, *chunk, again)

	c = collector(t, digest.Config{Parameters: digest.Omitted})
	c.Count(calling("acme", "de"))
	chunk = c.Collect(noon).Chunk
	require.Empty(t, chunk.Parameters)
	require.Empty(t, chunk.Records[0].Carried)
	_, err := digest.New(digest.Config{Parameters: digest.Plain})
	require.ErrorContains(t, err, "Config.Parameters is 1: write Hashed or Omitted")
}

func TestAParameterStandsInAChunkOnlyIfAllOperationsWereAskedForIt(t *testing.T) {
	t.Parallel()
	c := collector(t, digest.Config{})
	for i := range 40 {
		v := calling(fmt.Sprint("tenant-", i), "de")
		if i == 17 {
			// Another policy came.
			v.Detail = told{carried: []event.Carried{{Parameter: "header:X-Lang", Value: "de"}, {Parameter: "path:2", Value: "s"}}}
		}
		c.Count(v)
	}
	unread := denied("tenant-1")
	unread.RootFields = nil
	c.Count(unread)
	require.Equal(t, []string{"header:X-Lang"}, c.Collect(noon).Chunk.Parameters)
}

// TestWhoSendsMuchTakesNoMoreOfRedis has operations of very many fields, calls and values.
func TestWhoSendsMuchTakesNoMoreOfRedis(t *testing.T) {
	t.Parallel()
	c := collector(t, digest.Config{Records: 8})
	wide, often := calling("wide", "de"), calling("often", "de")
	for i := range 100 {
		wide.RootFields = append(wide.RootFields, fmt.Sprint("Query.f", i))
	}
	wide.Detail = told{parts: make([]event.Part, 102)}
	often.Detail = told{parts: []event.Part{{Calls: digest.MaxCalls}, {Calls: 1}}}
	c.Count(wide)
	c.Count(often)
	chunk := c.Collect(noon).Chunk
	require.Len(t, chunk.Records, 2)
	for _, r := range chunk.Records {
		require.True(t, r.Cut, r.Tenant)
		require.Nil(t, r.Parts)
		require.LessOrEqual(t, len(r.Fields), 16)
	}
	for i := range 1000 {
		c.Count(calling("loud", fmt.Sprint(i, strings.Repeat("v", 1<<16))))
	}
	c.Count(calling("quiet", "de"))
	chunk = c.Collect(noon).Chunk
	require.Len(t, chunk.Records, 4, "a quarter of them, as of everything else that a tenant varies")
	require.LessOrEqual(t, len(chunk.Encode()), digest.MaxChunk)
}

func TestWhoIsNotRecordedIsNotAskedForMore(t *testing.T) {
	t.Parallel()
	c, n := collector(t, digest.Config{Records: 1}), 0
	for second := range 20 {
		for i := range 50 {
			v := calling(fmt.Sprint("tenant-", i), "de")
			v.Detail = told{asked: &n}
			c.Count(v)
		}
		c.Collect(noon)
		if second == 0 {
			require.Equal(t, 50, n)
		}
	}
	require.Less(t, n, 500, "most tenants were not recorded")
	before := n
	v := calling("acme", "de")
	v.Outcome, v.Detail = "replayed", told{asked: &n}
	c.Count(v)
	require.Equal(t, before, n)
}
