package directory_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const document = `
version: 1
default: free
tiers:
  free: {limits: {minute: {capacity: 10, per: minute}}}
  pro: {limits: {minute: {capacity: 100, per: minute}}}
  careful: {limits: {minute: {capacity: 3, per: minute}}}
tenants:
  house: {tier: pro}
`

func compiled(t testing.TB) *tiers.Snapshot {
	t.Helper()
	s, err := tiers.Load([]byte(document), 1)
	require.NoError(t, err)
	return s
}

// source is one that can be away, slow, and counted.
type source struct {
	memory atomic.Pointer[directory.Memory]
	asked  atomic.Int64
	away   atomic.Bool
	// hold is for how long each question about a tenant takes.
	hold atomic.Int64
}

func newSource() *source {
	s := &source{}
	s.memory.Store(directory.NewMemory())
	return s
}

func (s *source) Put(ctx context.Context, tenant string, document []byte, expected uint64) (uint64, error) {
	return s.memory.Load().Put(ctx, tenant, document, expected)
}

var errAway = errors.New("away")

func (s *source) Tenant(ctx context.Context, tenant string) (*directory.Record, error) {
	s.asked.Add(1)
	if hold := time.Duration(s.hold.Load()); hold > 0 {
		select {
		case <-time.After(hold):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if s.away.Load() {
		return nil, errAway
	}
	return s.memory.Load().Tenant(ctx, tenant)
}

func (s *source) Changes(ctx context.Context, since directory.Mark) (directory.Page, error) {
	if s.away.Load() {
		return directory.Page{}, errAway
	}
	return s.memory.Load().Changes(ctx, since)
}

// write puts a record in the place of whatever is there.
func (s *source) write(t testing.TB, tenant, record string) {
	t.Helper()
	var expected uint64
	if was, err := s.memory.Load().Tenant(t.Context(), tenant); err == nil && was != nil {
		expected = was.Revision
	}
	_, err := s.Put(t.Context(), tenant, []byte(record), expected)
	require.NoError(t, err)
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func open(t testing.TB, from directory.Source, cfg directory.Config) *directory.Directory {
	t.Helper()
	if cfg.Observe.Logger == nil {
		cfg.Observe.Logger = quiet
	}
	d, err := directory.Open(t.Context(), compiled(t), from, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// capacity is that of the limit that a tenant has.
func capacity(t testing.TB, d *directory.Directory, subject tiers.Subject) int64 {
	t.Helper()
	rules := d.Snapshot().Rules(subject, tiers.Selection{Record: d.Prepare(t.Context(), subject)})
	return rules.Buckets[0].Limits.All()[0].Capacity
}

func of(t testing.TB, d *directory.Directory, tenant string) int64 {
	t.Helper()
	return capacity(t, d, tiers.Subject{Tenant: tenant})
}

const raised = `{"tier":"pro","limits":{"minute":{"capacity":700,"per":"minute"}}}`

func TestARecordIsInForceWithinAnIntervalAndTheSourceIsAskedOnceForEachChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := newSource()
		from.write(t, "acme", `{"tier":"pro"}`)
		d := open(t, from, directory.Config{})
		for range 3 {
			require.EqualValues(t, 100, of(t, d, "acme"))
			require.EqualValues(t, 10, of(t, d, "other"))
		}
		require.EqualValues(t, 2, from.asked.Load())

		from.write(t, "acme", raised)
		from.write(t, "other", `{"tier":"pro"}`)
		time.Sleep(time.Second)
		require.EqualValues(t, 700, of(t, d, "acme"))
		require.EqualValues(t, 100, of(t, d, "other"))
		from.write(t, "acme", "")
		time.Sleep(time.Second)
		require.EqualValues(t, 10, of(t, d, "acme"))
		require.EqualValues(t, 5, from.asked.Load())
	})
}

func TestWhatWasReadBeforeAChangeAndComesAfterItIsReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := newSource()
		from.write(t, "acme", `{"tier":"pro"}`)
		late := &lateSource{source: from}
		d := open(t, late, directory.Config{MissDeadline: 5 * time.Second})
		require.EqualValues(t, 100, of(t, d, "acme"), "the answer was read before the change")
		require.EqualValues(t, 700, of(t, d, "acme"))
	})
}

// lateSource reads the first answer, and gives it after it was changed and after the change was told.
type lateSource struct {
	*source
	once atomic.Bool
}

func (s *lateSource) Tenant(ctx context.Context, tenant string) (*directory.Record, error) {
	r, err := s.source.Tenant(ctx, tenant)
	if err == nil && !s.once.Swap(true) {
		if _, err := s.Put(ctx, tenant, []byte(raised), r.Revision); err != nil {
			return nil, err
		}
		time.Sleep(time.Second)
	}
	return r, err
}

func TestManyRequestsOfOneTenantAskOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := newSource()
		from.write(t, "acme", raised)
		d := open(t, from, directory.Config{})
		from.hold.Store(int64(20 * time.Millisecond))
		answers := make(chan int64, 100)
		for range cap(answers) {
			go func() { answers <- of(t, d, "acme") }()
		}
		for range cap(answers) {
			require.EqualValues(t, 700, <-answers)
		}
		require.EqualValues(t, 1, from.asked.Load())
	})
}

func TestASlowSourceHoldsNoRequestBeyondTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := newSource()
		from.write(t, "acme", raised)
		d := open(t, from, directory.Config{WhileUnknown: "careful", MissDeadline: 30 * time.Millisecond})
		from.hold.Store(int64(time.Minute))
		began := time.Now()
		require.EqualValues(t, 3, of(t, d, "acme"))
		require.Equal(t, 30*time.Millisecond, time.Since(began))
		began = time.Now()
		require.EqualValues(t, 3, of(t, d, "acme"), "whoever comes later does not wait again")
		require.Zero(t, time.Since(began))

		from.hold.Store(int64(100 * time.Millisecond))
		time.Sleep(3 * time.Second)
		require.EqualValues(t, 3, of(t, d, "acme"))
		time.Sleep(time.Second)
		require.EqualValues(t, 700, of(t, d, "acme"), "the answer is kept though nobody has waited for it")

		ctx, leave := context.WithCancel(t.Context())
		leave()
		began = time.Now()
		d.Prepare(ctx, tiers.Subject{Tenant: "left"})
		require.Zero(t, time.Since(began), "nor does a client that has left")
	})
}

func TestWhileTheSourceIsAwayWhatWasKnownHoldsAndTheRestIsInTheTierForThat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := newSource()
		from.write(t, "acme", raised)
		d := open(t, from, directory.Config{WhileUnknown: "careful"})
		require.EqualValues(t, 700, of(t, d, "acme"))
		require.EqualValues(t, 10, of(t, d, "plain"))
		from.away.Store(true)
		time.Sleep(time.Minute)
		require.True(t, d.Status().Away)
		asked := from.asked.Load()
		for i := range 100 {
			require.EqualValues(t, 700, of(t, d, "acme"))
			require.EqualValues(t, 10, of(t, d, "plain"), "that it has no record is known")
			require.EqualValues(t, 3, of(t, d, fmt.Sprint(i)))
		}
		require.Equal(t, asked, from.asked.Load(), "no request waits for it")
		require.EqualValues(t, 100, capacity(t, d, tiers.Subject{Tenant: "new", Tier: "pro"}), "a tier that is carried stays")
		require.EqualValues(t, 100, of(t, d, "house"), "as does what the policy lists")

		from.away.Store(false)
		from.write(t, "acme", `{"tier":"pro"}`)
		time.Sleep(time.Second)
		require.False(t, d.Status().Away)
		require.EqualValues(t, 100, of(t, d, "acme"))
		require.EqualValues(t, 10, of(t, d, "7"))
	})
}

func TestASourceThatHasLostEverythingLeavesWhatIsKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		from := newSource()
		from.write(t, "acme", `{"blocked":true}`)
		d := open(t, from, directory.Config{WhileUnknown: "careful"})
		blocked := func() bool {
			acme := tiers.Subject{Tenant: "acme"}
			return d.Snapshot().Rules(acme, tiers.Selection{Record: d.Prepare(t.Context(), acme)}).Blocked
		}
		require.True(t, blocked())
		from.memory.Store(directory.NewMemory())
		time.Sleep(time.Second)
		require.True(t, blocked())
		require.EqualValues(t, 3, of(t, d, "new"))
		from.write(t, "other", raised)
		from.write(t, "acme", raised)
		time.Sleep(time.Second)
		require.False(t, blocked(), "another history begins")
	})
}

func TestARestartWithoutTheSourceHasTheLastRecords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "records")
		cfg := directory.Config{WhileUnknown: "careful", LastGood: path}
		from := newSource()
		from.write(t, "acme", raised)
		from.write(t, "\xff\x00", `{"tier":"pro"}`)
		d := open(t, from, cfg)
		for _, tenant := range [...]string{"acme", "\xff\x00", "plain"} {
			of(t, d, tenant)
		}
		require.NoError(t, d.Close())

		from.away.Store(true)
		d = open(t, from, cfg)
		require.EqualValues(t, 700, of(t, d, "acme"))
		require.EqualValues(t, 100, of(t, d, "\xff\x00"))
		require.EqualValues(t, 10, of(t, d, "plain"))
		require.EqualValues(t, 3, of(t, d, "new"))
		require.NoError(t, d.Close())

		from.away.Store(false)
		from.write(t, "acme", `{"tier":"pro"}`)
		asked := from.asked.Load()
		d = open(t, from, cfg)
		require.EqualValues(t, 100, of(t, d, "acme"), "what has changed meanwhile is asked for")
		require.EqualValues(t, 100, of(t, d, "\xff\x00"))
		require.Equal(t, asked+1, from.asked.Load(), "and nothing else")
	})
}

func TestAFileThatIsNotWholeIsLeftOutAndSaidSo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "records")
	from := newSource()
	from.write(t, "acme", raised)
	d := open(t, from, directory.Config{LastGood: path})
	of(t, d, "acme")
	require.NoError(t, d.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	from.away.Store(true)
	changed := strings.Replace(string(whole), "700", "900", 1)
	for name, content := range map[string]string{
		"empty": "", "foreign": "version: 1\n", "half": string(whole[:len(whole)/2]), "without its end": string(whole[:len(whole)-30]),
		"changed": changed, "with more behind": string(whole) + "{}\n", "a line without end": string(whole[:60]) + strings.Repeat("x", 1<<20),
	} {
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		var log strings.Builder
		d := open(t, from, directory.Config{LastGood: path, Observe: directory.ObserveConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))}})
		require.Zero(t, d.Status().Known, name)
		require.EqualValues(t, 10, of(t, d, "acme"), name)
		require.NoError(t, d.Close())
		require.Contains(t, log.String(), "the last good records could not be read", name)
	}
}

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
			time.Sleep(10 * time.Millisecond)
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
			time.Sleep(time.Second)
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

func TestARecordThatDoesNotFitThePolicyIsLoggedAndTheTenantHasItsTier(t *testing.T) {
	t.Parallel()
	from := newSource()
	from.write(t, "acme", `{"tier":"gold"}`)
	var log strings.Builder
	d := open(t, from, directory.Config{Observe: directory.ObserveConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))}})
	require.EqualValues(t, 10, of(t, d, "acme"))
	require.NoError(t, d.Close())
	require.Contains(t, log.String(), "result=misfit")
	require.Contains(t, log.String(), "there is no tier")
}

func TestMistakesInTheConfigurationAreAllReported(t *testing.T) {
	t.Parallel()
	_, err := directory.Open(t.Context(), tiers.NewModeSwitch(compiled(t)), nil, directory.Config{
		Interval: 1, Patience: -1, MissDeadline: time.Hour, MissesPerSecond: -1, MaxBytes: 1, LastGood: "/nowhere/at/all",
		Observe: directory.ObserveConfig{Name: strings.Repeat("x", 65)},
	})
	for _, field := range [...]string{
		"the source is nil", "put it around the directory", "Interval", "Patience", "MissDeadline", "MissesPerSecond", "MaxBytes", "LastGood", "Name",
	} {
		require.ErrorContains(t, err, field)
	}
	_, err = directory.Open(t.Context(), compiled(t), newSource(), directory.Config{WhileUnknown: "gold"})
	require.ErrorContains(t, err, "the policy has no such tier")
}

func TestATenantInTheCacheIsLookedUpWithoutAllocating(t *testing.T) {
	from := newSource()
	from.write(t, "acme", raised)
	d := open(t, from, directory.Config{})
	acme := tiers.Subject{Tenant: "acme"}
	require.EqualValues(t, 700, of(t, d, "acme"))
	var room tiers.Rules
	require.Zero(t, testing.AllocsPerRun(100, func() {
		room = d.Snapshot().Rules(acme, tiers.Selection{Record: d.Prepare(context.Background(), acme)})
	}))
	require.Len(t, room.Buckets, 1)
}
