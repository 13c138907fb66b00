package e2e_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// strangers are subjects none of which may learn what another one did. They have names of one length.
var strangers = map[string][2]request{
	"tenants":               {{Tenant: "tenant-a"}, {Tenant: "tenant-b"}},
	"teams":                 {{Tenant: "acme", Team: "team-a"}, {Tenant: "acme", Team: "team-b"}},
	"users":                 {{Tenant: "acme", User: "user-a"}, {Tenant: "acme", User: "user-b"}},
	"users of teams":        {{Tenant: "acme", Team: "one", User: "same"}, {Tenant: "acme", Team: "two", User: "same"}},
	"a user and the tenant": {{Tenant: "acme"}, {Tenant: "acme", User: "user-b"}},
}

const anotherKey = "b9c7a4d2-1111-4222-8333-944455556666"

// uses are what the other subject did under the key before: each leaves another record.
var uses = map[string]string{
	"the same operation": createUser,
	"another operation":  createOther,
	"a query":            cheapQuery,
	"a failure":          `mutation { createAndFail(name: "Grace") { id } }`,
}

// TestAKeyOfAnotherSubjectIsAnsweredByteForByteLikeOneThatWasNeverUsed compares whole responses, headers
// included, in two servers: in one the other subject has used the key, in the other a different one.
func TestAKeyOfAnotherSubjectIsAnsweredByteForByteLikeOneThatWasNeverUsed(t *testing.T) {
	t.Parallel()
	for who, pair := range strangers {
		for what, query := range uses {
			answer := func(key string) reply {
				f := newFixture(t, nil)
				other, own := pair[0], pair[1]
				other.Query, other.Key = query, key
				f.post(other)
				own.Query, own.Key = createUser, testKey
				got := f.post(own)
				got.Header.Del("Date")
				return got
			}
			used, never := answer(testKey), answer(anotherKey)
			require.Equal(t, http.StatusOK, used.Status)
			require.Equal(t, never, used, "%s, %s", who, what)
		}
	}
}

// recordedCommands keeps the arguments of each command of a client.
type recordedCommands struct{ commands [][]string }

func (r *recordedCommands) DialHook(next redis.DialHook) redis.DialHook { return next }
func (r *recordedCommands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if setsUp(cmd) {
			return next(ctx, cmd)
		}
		var args []string
		for _, arg := range cmd.Args() {
			switch arg := arg.(type) {
			case string:
				args = append(args, arg)
			case []byte:
				args = append(args, string(arg))
			default:
				args = append(args, "number")
			}
		}
		r.commands = append(r.commands, args)
		return next(ctx, cmd)
	}
}

func (r *recordedCommands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestAKeyOfAnotherSubjectSendsTheSameCommandsAsOneThatWasNeverUsed records what reaches Redis. What differs
// from attempt to attempt, as dates, the random id of the attempt and the digest that names a record do, has
// the same length.
func TestAKeyOfAnotherSubjectSendsTheSameCommandsAsOneThatWasNeverUsed(t *testing.T) {
	t.Parallel()
	for who, pair := range strangers {
		commands := func(key string) [][]string {
			options := &redis.Options{Addr: redistest.Start(t).Addr}
			redisclient.Bound(options)
			options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = patience, patience, patience, patience
			client, recorded := redis.NewClient(options), &recordedCommands{}
			defer func() { _ = client.Close() }()
			store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: patience})
			require.NoError(t, err)
			server := newInProcess(t, store, nil)
			other, own := pair[0], pair[1]
			other.Query, other.Key = createOther, key
			server.post(other)
			// The scripts are loaded, and the clock of Redis is known.
			warm := pair[1]
			warm.Query = cheapQuery
			server.post(warm)
			client.AddHook(recorded)
			own.Query, own.Key = createUser, testKey
			require.Equal(t, http.StatusOK, server.post(own).Status)
			return recorded.commands
		}
		used, never := commands(testKey), commands(anotherKey)
		require.Len(t, used, 2, "%s: a take and a settlement", who)
		require.Len(t, never, len(used), who)
		for i := range used {
			require.Len(t, used[i], len(never[i]), who)
			require.Equal(t, never[i][:3], used[i][:3], "%s: the same script", who)
			for j := range used[i] {
				require.Len(t, used[i][j], len(never[i][j]), "%s: argument %d of command %d", who, j, i)
			}
		}
		require.NotContains(t, used[0], testKey)
	}
}
