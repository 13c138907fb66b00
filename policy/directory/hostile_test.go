package directory_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestNamesThatNobodyHasAreAskedForAtARateAndDriveNothingOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := newSource()
		for i := range 200 {
			from.write(t, fmt.Sprintf("known%d", i), raised)
		}
		d := open(t, from, directory.Config{MaxBytes: 1 << 20, MissesPerSecond: 100})
		for i := range 200 {
			of(t, d, fmt.Sprintf("known%d", i))
			pass(10 * time.Millisecond)
		}
		of(t, d, "plain")
		known, asked := d.Status().Known, from.asked.Load()
		require.Equal(t, 200, known)
		for second := range 100 {
			for i := range 1000 {
				of(t, d, fmt.Sprintf("a-name-that-nobody-has-%d-%d-%s", second, i, strings.Repeat("x", 200)))
			}
			// Whoever comes again stays.
			of(t, d, "plain")
			pass(time.Second)
		}
		require.Equal(t, known, d.Status().Known)
		require.LessOrEqual(t, d.Status().Bytes, int64(1<<20))
		require.LessOrEqual(t, from.asked.Load()-asked, int64(101*100))
		asked = from.asked.Load()
		for i := range 200 {
			require.EqualValues(t, 700, of(t, d, fmt.Sprintf("known%d", i)))
		}
		require.EqualValues(t, 10, of(t, d, "plain"))
		require.Equal(t, asked, from.asked.Load())
	})
}

func TestTheSourceIsNotAskedAboutAnonymousSubjectsNorAboutThoseThatThePolicyLists(t *testing.T) {
	t.Parallel()
	from := newSource()
	from.write(t, "192.0.2.1", raised)
	d := open(t, from, directory.Config{WhileUnknown: "careful"})
	require.EqualValues(t, 10, capacity(t, d, tiers.Subject{Tenant: "192.0.2.1", Anonymous: true}))
	require.EqualValues(t, 100, of(t, d, "house"))
	require.EqualValues(t, 10, of(t, d, strings.Repeat("x", tiers.MaxLongName+1)))
	require.Zero(t, from.asked.Load())
}

func TestTheCacheKeepsToItsBytesAndThoseWhoComeAgainStay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := newSource()
		name := func(i int) string { return fmt.Sprintf("tenant-%d", i) }
		for i := range 12_000 {
			from.write(t, name(i), `{"tier":"pro"}`)
		}
		d := open(t, from, directory.Config{MaxBytes: 1 << 20, MissesPerSecond: 1_000_000})
		of(t, d, name(0))
		of(t, d, name(0))
		for i := range 12_000 {
			require.EqualValues(t, 100, of(t, d, name(i)))
			if i%1000 == 0 {
				of(t, d, name(0))
			}
		}
		require.LessOrEqual(t, d.Status().Bytes, int64(1<<20))
		require.Greater(t, d.Status().Known, 5000)
		require.Less(t, d.Status().Known, 12_000)
		asked := from.asked.Load()
		of(t, d, name(0))
		require.Equal(t, asked, from.asked.Load())
	})
}

// broken answers with what no source may.
type broken struct {
	directory.Source
	record *directory.Record
	page   directory.Page
}

func (b *broken) Tenant(context.Context, string) (*directory.Record, error) {
	if b.record == nil {
		panic("broken")
	}
	return b.record, nil
}

func (b *broken) Changes(context.Context, directory.Mark) (directory.Page, error) { return b.page, nil }

func TestASourceThatAnswersWithAnythingBreaksNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		endless := directory.Page{Through: directory.Mark{Origin: "x"}, More: true}
		for _, b := range []*broken{
			{page: endless},
			{page: directory.Page{Through: directory.Mark{Origin: strings.Repeat("x", 1000)}, Gap: true}},
			{page: directory.Page{Changes: make([]directory.Change, directory.MaxPage+1)}},
			{record: &directory.Record{Tenant: "other", Revision: 1, Document: []byte(raised)}},
			{record: &directory.Record{Tenant: "acme", Document: []byte(raised)}},
			{record: &directory.Record{Tenant: "acme", Revision: 1, Document: []byte(`{"tier": 7}`)}},
			{record: &directory.Record{Tenant: "acme", Revision: 1, Document: make([]byte, 10<<20)}},
		} {
			d := open(t, b, directory.Config{WhileUnknown: "careful"})
			require.EqualValues(t, 3, of(t, d, "acme"))
			require.NoError(t, d.Close())
		}
	})
}
