package policy_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// kept writes a last good policy and returns its path.
func kept(t testing.TB, r *policy.Revision) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "last-good")
	f, _ := follow(t, &memory{newest: r}, policy.Config{LastGood: path})
	require.NoError(t, f.Close())
	return path
}

func TestTheOrderAtTheStartIsFeedThenDiskThenFirst(t *testing.T) {
	t.Parallel()
	feeds := map[string]struct {
		feed *memory
		want []string
	}{
		"a feed that has a newer one":   {&memory{newest: revision(6)}, []string{"applied 6 of feed"}},
		"a feed that has the same":      {&memory{newest: revision(5)}, []string{"applied 5 of last_good"}},
		"a feed that has an older one":  {&memory{newest: revision(4)}, []string{"refused 4 older", "applied 5 of last_good", " to never"}},
		"a feed that has a wrong one":   {&memory{newest: other(6, []byte("["))}, []string{"refused 6 document", "applied 5 of last_good"}},
		"a feed that is away":           {&memory{err: errAway}, []string{"applied 5 of last_good", " to never"}},
		"a feed that has nothing":       {&memory{}, []string{"applied 5 of last_good", " to never"}},
		"a feed that does not answer":   {&memory{answering: hang}, []string{"applied 5 of last_good", " to never"}},
		"a feed with other content":     {&memory{newest: other(5, document(7))}, []string{"refused 5 conflict", "applied 5 of last_good"}},
		"a feed with a cut document":    {&memory{newest: cut(revision(6))}, []string{"refused 6 hash", "applied 5 of last_good"}},
		"a feed with a number too high": {&memory{newest: other(policy.MaxNumber+1, document(1))}, []string{"refused 9007199254740992 malformed", "applied 5 of last_good"}},
	}
	for name, test := range feeds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := kept(t, revision(5))
			synctest.Test(t, func(t *testing.T) {
				f, o := follow(t, test.feed, policy.Config{LastGood: path, First: first(t), Interval: policy.None})
				require.Equal(t, test.want, o.short())
				require.NotEqual(t, 999, maxCost(f))
			})
		})
	}
	t.Run("first", func(t *testing.T) {
		t.Parallel()
		f, o := follow(t, &memory{err: errAway}, policy.Config{LastGood: filepath.Join(t.TempDir(), "none"), First: first(t), Interval: policy.None})
		require.Equal(t, 999, maxCost(f))
		require.Equal(t, []string{"applied 0 of first", " to never"}, o.short())
		require.Empty(t, o.said(), "a file that is not there yet is no mistake")
	})
}

func hang(ctx context.Context, _ policy.Head) (*policy.Revision, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func cut(r *policy.Revision) *policy.Revision {
	r.Document = r.Document[:len(r.Document)-2]
	return r
}

func TestAStartWithoutAnyPolicySaysWhyAndWhatToDo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "last-good")
	require.NoError(t, os.WriteFile(path, document(1), 0o600))
	_, err := policy.Follow(t.Context(), &memory{err: errAway}, policy.Config{LastGood: path})
	require.ErrorIs(t, err, errAway)
	for _, part := range []string{"this is no revision", "Config.First", "Config.LastGood"} {
		require.ErrorContains(t, err, part)
	}
	var mistakes *tiers.PolicyError
	_, err = policy.Follow(t.Context(), &memory{newest: other(1, []byte("["))}, policy.Config{})
	require.ErrorAs(t, err, &mistakes)
}

func TestMistakesOfTheConfigurationAreReportedAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := policy.Follow(t.Context(), nil, policy.Config{
		Interval: time.Hour, Patience: -time.Second, LastGood: filepath.Join(t.TempDir(), "no", "folder"),
		Keys: append(make([]ed25519.PublicKey, 16), publicOf(keyOf(1))), Observe: policy.ObserveConfig{Name: strings.Repeat("x", 65)},
	})
	for _, part := range []string{
		"the feed is nil", "Config.Interval is 1h0m0s: write 100ms to 1m0s", "Config.Patience is -1s", "Config.LastGood is in",
		"Config.Keys has 17 keys", "Config.Keys[0] has 0 bytes", "Config.Observe.Name has 65 bytes",
	} {
		require.ErrorContains(t, err, part)
	}
}

func TestTheDiskHasTheExactBytesOfWhatHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "last-good")
		key := keyOf(1)
		r := other(3, append(document(3), "# as written\r\n"...))
		r.Author, r.Reason, r.Published = "ada", "why not", time.UnixMilli(1_790_000_000_123).UTC()
		feed := &memory{newest: signed(r, key)}
		follow(t, feed, policy.Config{LastGood: path, Keys: []ed25519.PublicKey{publicOf(key)}})
		read := func() *policy.Revision {
			pass(2 * time.Second)
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			got := &policy.Revision{}
			require.NoError(t, got.UnmarshalBinary(data))
			return got
		}
		require.Equal(t, r, read())
		feed.set(signed(other(4, []byte("[")), key), nil)
		require.Equal(t, r, read(), "what is refused is not kept")
		next := signed(revision(5), key)
		feed.set(next, nil)
		require.Equal(t, next.Head(), read().Head())
		entries, err := os.ReadDir(filepath.Dir(path))
		require.NoError(t, err)
		require.Len(t, entries, 1, "nothing else is left in the folder")
		info, err := entries[0].Info()
		require.NoError(t, err)
		require.EqualValues(t, 0o600, info.Mode().Perm())
	})
}

func TestWhatIsOnTheDiskIsJudgedAsAnewAtEachStart(t *testing.T) {
	t.Parallel()
	key, stranger := keyOf(1), keyOf(2)
	encode := func(r *policy.Revision) []byte {
		data, err := r.MarshalBinary()
		require.NoError(t, err)
		return data
	}
	whole := encode(signed(revision(5), key))
	files := map[string][]byte{
		"is half written":                 whole[:len(whole)-5],
		"ends in its header":              whole[:40],
		"is empty":                        {},
		"is a policy and no revision":     document(5),
		"has a changed byte":              []byte(strings.Replace(string(whole), "maxCost: 5", "maxCost: 6", 1)),
		"has another number":              []byte(strings.Replace(string(whole), `"number":5`, `"number":6`, 1)),
		"has another author":              []byte(strings.Replace(string(whole), `"hash"`, `"author":"eve","hash"`, 1)),
		"has an unknown field":            []byte(strings.Replace(string(whole), `"hash"`, `"mode":"off","hash"`, 1)),
		"is not signed":                   encode(revision(5)),
		"is signed by a stranger":         encode(signed(revision(5), stranger)),
		"is a policy that is one no more": encode(signed(other(5, []byte("version: 0\n")), key)),
		"is huge":                         append(whole, make([]byte, 2<<20)...),
	}
	for name, data := range files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "last-good")
			require.NoError(t, os.WriteFile(path, data, 0o600))
			cfg := policy.Config{LastGood: path, First: first(t), Keys: []ed25519.PublicKey{publicOf(key)}, Interval: policy.None}
			feed := &memory{err: errAway}
			f, o := follow(t, feed, cfg)
			require.Equal(t, 999, maxCost(f))
			require.Contains(t, o.said(), "the last good policy on the disk cannot be used")

			// It is no obstacle to the revision that the feed has.
			feed.set(signed(revision(1), key), nil)
			require.NoError(t, f.Reload(t.Context()))
			require.Equal(t, 1, maxCost(f))
			require.NoError(t, f.Close())
			again, _ := follow(t, &memory{err: errAway}, cfg)
			require.Equal(t, 1, maxCost(again), "it was put in its place")
		})
	}
}

func TestAnOlderRevisionIsRefusedAfterARestartToo(t *testing.T) {
	t.Parallel()
	key := keyOf(1)
	path := kept(t, signed(revision(5), key))
	feed := &memory{newest: signed(revision(4), key)}
	f, _ := follow(t, feed, policy.Config{LastGood: path, Keys: []ed25519.PublicKey{publicOf(key)}, Interval: policy.None})
	require.Error(t, f.Reload(t.Context()))
	require.Equal(t, 5, maxCost(f))
}

func TestADiskThatCannotBeWrittenIsSaidAndKeepsNobodyFromTheNextPolicy(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "state")
	require.NoError(t, os.Mkdir(folder, 0o700))
	feed := &memory{newest: revision(1)}
	path := filepath.Join(folder, "last-good")
	synctest.Test(t, func(t *testing.T) {
		f, o := follow(t, feed, policy.Config{LastGood: path})
		pass(time.Second)
		require.NoError(t, os.RemoveAll(folder))
		feed.set(revision(2), nil)
		pass(30 * time.Second)
		require.Equal(t, 2, maxCost(f))
		require.Contains(t, f.Status().Unsaved, "no such file")
		require.Equal(t, []string{"applied 1 of feed", "applied 2 of feed", "current to current unsaved"}, o.short())
		require.NoError(t, os.Mkdir(folder, 0o700))
		pass(30 * time.Second)
		require.Empty(t, f.Status().Unsaved)
		require.FileExists(t, path)
		require.Equal(t, "current to current", o.short()[3], "it is told once that it is kept again")
	})
}

func TestAnInstanceThatStartsWithARevisionThatItCannotUseServesTheOneBefore(t *testing.T) {
	t.Parallel()
	errNoStore := errors.New("no such store")
	refusing := func(cost int) func(*tiers.Snapshot) error {
		return func(s *tiers.Snapshot) error {
			if maxCost(s) == cost {
				return errNoStore
			}
			return nil
		}
	}
	path := kept(t, revision(5))
	feed := &memory{newest: revision(6)}
	f, o := follow(t, feed, policy.Config{LastGood: path, First: first(t), Interval: policy.None})
	require.Equal(t, 6, maxCost(f))
	require.NoError(t, f.Check(refusing(6)), "the others go on without revision 6, and so does this one")
	require.Equal(t, 5, maxCost(f))
	require.EqualValues(t, 6, f.Status().Refused.Number)
	require.Empty(t, feed.given())
	require.NoError(t, f.Check(refusing(5)))
	require.Equal(t, 999, maxCost(f))
	require.ErrorIs(t, f.Check(refusing(999)), errNoStore, "there is nothing else")
	require.Equal(t, []string{
		"applied 6 of feed", "applied 5 of last_good", "refused 6 check", "applied 0 of first", "refused 5 check",
	}, o.short())
	require.ErrorIs(t, f.Reload(t.Context()), errNoStore)

	feed.set(revision(7), nil)
	require.NoError(t, f.Reload(t.Context()))
	require.ErrorIs(t, f.Check(refusing(7)), errNoStore, "what was there at the start is not brought back later")
	require.Equal(t, 7, maxCost(f))
}

func TestTheOneBeforeIsKeptOnTheDiskAgain(t *testing.T) {
	t.Parallel()
	path := kept(t, revision(5))
	f, _ := follow(t, &memory{newest: revision(6)}, policy.Config{LastGood: path, Interval: policy.None})
	require.NoError(t, f.Check(func(s *tiers.Snapshot) error {
		if maxCost(s) == 6 {
			return errAway
		}
		return nil
	}))
	require.NoError(t, f.Close())
	again, _ := follow(t, &memory{err: errAway}, policy.Config{LastGood: path, Interval: policy.None})
	require.Equal(t, 5, maxCost(again))
}

func TestAClockThatIsADayWrongKeepsNobodyFromTheNewestRevision(t *testing.T) {
	t.Parallel()
	key := keyOf(1)
	for name, wrong := range map[string]time.Duration{"fast": -24 * time.Hour, "slow": 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// To an instance whose clock is fast everything was published long ago.
			at := func(number uint64, published time.Time) *policy.Revision {
				r := revision(number)
				r.Published = published.Truncate(time.Millisecond).UTC()
				return signed(r, key)
			}
			path := kept(t, at(5, time.Now().Add(wrong)))
			require.NoError(t, os.Chtimes(path, time.Now().Add(wrong), time.Now().Add(wrong)))
			synctest.Test(t, func(t *testing.T) {
				feed := &memory{err: errAway}
				f, _ := follow(t, feed, policy.Config{LastGood: path, Keys: []ed25519.PublicKey{publicOf(key)}})
				require.Equal(t, 5, maxCost(f), "what the disk has holds, whenever it was published")
				require.Equal(t, policy.Never, f.Status().State)
				// The publisher of the next one has a clock that is wrong the other way round.
				feed.set(at(6, time.Now().Add(-2*wrong)), nil)
				pass(2 * time.Second)
				require.Equal(t, 6, maxCost(f))
				feed.set(at(4, time.Now().Add(10*wrong)), nil)
				pass(2 * time.Second)
				require.Equal(t, 6, maxCost(f), "what is older by its number is older, whatever its time says")
				require.Equal(t, policy.ReasonOlder, f.Status().Refused.Cause)
			})
		})
	}
}
