package redisdirectory_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory/directorytest"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory/redisdirectory"
)

func open(t testing.TB, client redis.UniversalClient) *redisdirectory.Source {
	t.Helper()
	source, err := redisdirectory.New(redisdirectory.Config{Client: client})
	require.NoError(t, err)
	return source
}

func TestARedisKeepsTheContractOfSources(t *testing.T) {
	t.Parallel()
	directorytest.Run(t, func(t *testing.T) directorytest.Harness {
		t.Helper()
		server := redistest.Start(t)
		return directorytest.Harness{
			Open: func() directorytest.Source {
				client := redistest.Connect(t, server.Addr)
				return open(t, client)
			},
			Lose: func() error { return redistest.Plain(t, server.Addr).FlushAll(context.Background()).Err() },
		}
	})
}

func TestTheRightsThatAreNamedAreEnoughAndNoMore(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	admin := redistest.Plain(t, server.Addr)
	base, err := bucket.ACLRules("main", false)
	require.NoError(t, err)
	rules, err := redisdirectory.ACLRules("", "")
	require.NoError(t, err)
	command := []any{"ACL", "SETUSER", "limiter", "on", ">secret", "resetkeys", "resetchannels", "-@all"}
	for _, rule := range append(base, rules...) {
		command = append(command, rule)
	}
	require.NoError(t, admin.Do(t.Context(), command...).Err())
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "limiter", Password: "secret"})
	t.Cleanup(func() { _ = client.Close() })
	source := open(t, client)
	revision, err := source.Put(t.Context(), "acme", []byte(`{"tier":"pro"}`), 0)
	require.NoError(t, err)
	_, err = source.Put(t.Context(), "acme", nil, revision)
	require.NoError(t, err)
	_, err = source.Tenant(t.Context(), "acme")
	require.NoError(t, err)
	page, err := source.Changes(t.Context(), directory.Mark{})
	require.NoError(t, err)
	_, err = source.Changes(t.Context(), page.Through)
	require.NoError(t, err)
	require.NoError(t, admin.FlushAll(t.Context()).Err())
	_, err = source.Refill(t.Context(), records(3, func(int) error { return nil }))
	require.NoError(t, err)
	_, err = source.Refill(t.Context(), records(3, func(i int) error {
		if i == 0 {
			return admin.FlushAll(t.Context()).Err()
		}
		_, err := source.Put(t.Context(), "other", []byte(`{"tier":"pro"}`), 0)
		return err
	}))
	require.NoError(t, err)
	require.Error(t, client.Get(t.Context(), "else").Err())
}

func TestMistakesInTheConfigurationAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := redisdirectory.New(redisdirectory.Config{Namespace: "a b", Name: strings.Repeat("x", 65)})
	require.ErrorContains(t, err, "Config.Client is nil")
	require.ErrorContains(t, err, "Config.Namespace")
	require.ErrorContains(t, err, "Config.Name")
}

func TestWhatSomebodyElseHasWrittenIsNoRecordAndNotRead(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redistest.Plain(t, server.Addr)
	source := open(t, client)
	_, err := source.Put(t.Context(), "acme", []byte(`{"tier":"pro"}`), 0)
	require.NoError(t, err)
	require.NoError(t, client.HSet(t.Context(), source.String()+":records", "huge", "2:"+strings.Repeat("x", 64<<20), "odd", "no revision").Err())
	r, err := source.Tenant(t.Context(), "huge")
	require.NoError(t, err)
	require.LessOrEqual(t, len(r.Document), 1)
	_, err = source.Tenant(t.Context(), "odd")
	require.Error(t, err)
}

func TestWhoHasNotAskedForLongerThanTheHistoryGoesBackIsToldOfAGap(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redistest.Plain(t, server.Addr)
	source := open(t, client)
	_, err := source.Put(t.Context(), "acme", []byte(`{"tier":"pro"}`), 0)
	require.NoError(t, err)
	page, err := source.Changes(t.Context(), directory.Mark{})
	require.NoError(t, err)
	// As many tenants as are remembered have changed since, of which the test writes the last one itself.
	const rest = 100_000
	for from := 0; from < rest; from += 1000 {
		var members []redis.Z
		for i := from; i < from+1000; i++ {
			members = append(members, redis.Z{Score: float64(i + 2), Member: fmt.Sprint(i)})
		}
		require.NoError(t, client.ZAdd(t.Context(), source.String()+":changes", members...).Err())
	}
	require.NoError(t, client.HSet(t.Context(), source.String(), "revision", rest+1).Err())
	got, err := source.Changes(t.Context(), page.Through)
	require.NoError(t, err)
	require.False(t, got.Gap)
	_, err = source.Put(t.Context(), "last", []byte(`{"tier":"pro"}`), 0)
	require.NoError(t, err)
	got, err = source.Changes(t.Context(), page.Through)
	require.NoError(t, err)
	require.True(t, got.Gap)
	require.EqualValues(t, rest+2, got.Through.Revision)
	n, err := client.ZCard(t.Context(), source.String()+":changes").Result()
	require.NoError(t, err)
	require.EqualValues(t, rest, n)
}
