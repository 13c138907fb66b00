package bucket_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/fleet"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/lua"
)

// limiter is the user of Redis with few rights.
const limiter = "limiter"

// allow gives the user these rights and no others.
func allow(t *testing.T, admin redis.UniversalClient, rules ...string) {
	t.Helper()
	args := []any{"acl", "setuser", limiter, "reset", "on", ">pw"}
	for _, rule := range rules {
		args = append(args, rule)
	}
	require.NoError(t, admin.Do(context.Background(), args...).Err())
}

func aclRules(t *testing.T, cluster bool) []string {
	t.Helper()
	rules, err := bucket.ACLRules("", cluster)
	require.NoError(t, err)
	return rules
}

// refused returns what the server has refused to users so far.
func refused(t *testing.T, admin redis.UniversalClient) []string {
	t.Helper()
	entries, err := admin.Do(context.Background(), "acl", "log").Slice()
	require.NoError(t, err)
	var objects []string
	for _, entry := range entries {
		fields := fmt.Sprint(entry)
		_, object, found := strings.Cut(fields, "object:")
		require.True(t, found, fields)
		object, _, _ = strings.Cut(object, " ")
		objects = append(objects, object)
	}
	return objects
}

// useEverything makes each call that the library makes, in such a way that each command of its scripts
// runs, and returns the errors.
func useEverything(client redis.UniversalClient, namespace, tenant string, one, both []bucket.Bucket) error {
	ctx := context.Background()
	config := bucket.RedisConfig{Client: client, Timeout: patience, Namespace: namespace}
	store, err := bucket.NewRedis(config)
	errs := []error{err}
	note := func(err error) { errs = append(errs, err) }
	answers, err := bucket.NewRedisAnswers(config)
	note(err)
	note(answers.Put(ctx, tenant, []byte("answer"), time.Minute))
	_, err = answers.Get(ctx, tenant)
	note(err)
	for _, buckets := range [][]bucket.Bucket{both, one} {
		result, err := store.Take(ctx, bucket.Take{Tenant: tenant, Buckets: buckets, Amounts: points(10)})
		note(err)
		_, err = store.Settle(ctx, bucket.Settlement{Receipt: result.Receipt, Actual: points(5)})
		note(err)
	}
	claim := &idempotency.Claim{Key: "12345678", Attempt: idempotency.NewAttemptID()}
	_, err = store.Take(ctx, bucket.Take{Tenant: tenant, Claim: claim})
	note(err)
	_, err = store.Renew(ctx, tenant, claim)
	note(err)
	_, err = store.Settle(ctx, bucket.Settlement{Claim: &bucket.ClaimSettlement{
		Tenant: tenant, Claim: claim, Outcome: idempotency.Released,
	}})
	note(err)
	_, err = store.Peek(ctx, tenant, both)
	note(err)
	_, err = store.Grant(ctx, tenant, both, points(1000))
	note(err)
	_, err = store.SetOverride(ctx, tenant, bucket.Override{Limit: "hour", Capacity: 10, Reason: "test", Actor: "test"})
	note(err)
	_, err = store.ListOverrides(ctx, tenant)
	note(err)
	_, err = store.Take(ctx, bucket.Take{
		Tenant: tenant, Buckets: both, Amounts: points(1), Candidate: &bucket.Candidate{ID: "next", Buckets: both},
	})
	note(err)
	_, err = store.DeleteOverride(ctx, tenant, bucket.Owner{}, "hour")
	note(err)
	_, err = store.ClearOverrides(ctx, tenant)
	note(err)
	note(store.Reset(ctx, tenant, both))
	_, _, err = store.Beat(ctx, fleet.NewInstance())
	note(err)
	counted, err := store.Take(ctx, bucket.Take{
		Tenant: tenant, Buckets: both, Amounts: points(3), Usage: &bucket.Usage{Fields: []bucket.FieldUsage{{Name: "Query.search", Points: 3, Calls: 1}}},
	})
	note(err)
	_, err = store.Settle(ctx, bucket.Settlement{Receipt: counted.Receipt, Actual: points(1)})
	note(err)
	at, _ := counted.Receipt.Counted()
	read, err := store.ReadUsage(ctx, tenant, at, bucket.UsageExact)
	note(err)
	if read == nil {
		note(errors.New("nothing was counted"))
		read = &bucket.UsageHour{}
	}
	_, err = store.ForgetUsage(ctx, read)
	note(err)
	return errors.Join(errs...)
}

func rightsBuckets(t *testing.T) (one, both []bucket.Bucket) {
	t.Helper()
	hour := bucket.Limit{Name: "hour", Capacity: 1000, Period: time.Hour}
	day := bucket.Limit{Name: "day", Capacity: 1000, Period: 24 * time.Hour}
	return []bucket.Bucket{{Limits: compile(t, hour)}}, []bucket.Bucket{{Limits: compile(t, hour, day)}}
}

func TestTheRightsOfAUserAreTheCommandsOfTheScripts(t *testing.T) {
	t.Parallel()
	// What the Go code sends itself.
	want := []string{"+eval", "+evalsha", "+unlink"}
	calls := regexp.MustCompile(`redis\.p?call\('([A-Z]+)'`)
	scripts := lua.Load()
	for _, script := range scripts.All() {
		for _, match := range calls.FindAllStringSubmatch(script.Source, -1) {
			want = append(want, "+"+strings.ToLower(match[1]))
		}
	}
	slices.Sort(want)
	var commands []string
	for _, rule := range aclRules(t, false) {
		if strings.HasPrefix(rule, "+") {
			commands = append(commands, rule)
		}
	}
	slices.Sort(commands)
	require.Equal(t, slices.Compact(want), commands)
}

func TestTheRulesAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/guide/redis.md")
	require.NoError(t, err)
	for _, cluster := range []bool{false, true} {
		require.Contains(t, string(text), "ACL SETUSER limiter on >PASSWORD "+strings.Join(aclRules(t, cluster), " ")+"\n")
	}
	require.Contains(t, string(text), "ACL SETUSER limiter on >PASSWORD "+strings.Join(sentinelRules, " ")+"\n")
}

func TestRulesAreThoseOfOneNamespace(t *testing.T) {
	t.Parallel()
	rules, err := bucket.ACLRules("shop.eu-1", false)
	require.NoError(t, err)
	require.Contains(t, rules, "~rl:shop.eu-1:*")
	_, err = bucket.ACLRules("*", false)
	require.ErrorContains(t, err, `namespace "*"`)

	admin := patientClient(t, redistest.Start(t).Addr)
	allow(t, admin, aclRules(t, false)...)
	options := patientOptions(admin.Options().Addr)
	options.Username, options.Password = limiter, "pw"
	one, both := rightsBuckets(t)
	require.ErrorContains(t, useEverything(openClient(t, options), "other", "acme", one, both), "NOPERM")
	keys, err := admin.DBSize(context.Background()).Result()
	require.NoError(t, err)
	require.Zero(t, keys)
}

func TestEachRightIsNeeded(t *testing.T) {
	t.Parallel()
	admin := patientClient(t, redistest.Start(t).Addr)
	options := patientOptions(admin.Options().Addr)
	options.Username, options.Password = limiter, "pw"
	one, both := rightsBuckets(t)
	use := func(without string) error {
		rules := slices.DeleteFunc(aclRules(t, false), func(rule string) bool { return rule == without })
		allow(t, admin, rules...)
		client := redis.NewClient(options)
		defer func() { _ = client.Close() }()
		// Each user meets scripts that the server does not know.
		require.NoError(t, admin.ScriptFlush(context.Background()).Err())
		return useEverything(client, "", "without"+strings.Trim(without, "+"), one, both)
	}
	require.NoError(t, use(""))
	require.Empty(t, refused(t, admin))
	for _, rule := range aclRules(t, false) {
		command, isCommand := strings.CutPrefix(rule, "+")
		if !isCommand {
			continue
		}
		require.Error(t, use(rule), rule)
		require.Equal(t, []string{command}, slices.Compact(refused(t, admin)), rule)
		require.NoError(t, admin.Do(context.Background(), "acl", "log", "reset").Err())
	}
}

func TestFewRightsAreEnoughInACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	for _, rules := range [][]string{aclRules(t, true), aclRules(t, false)} {
		var admins []*redis.Client
		for _, addr := range cluster.Addrs {
			admins = append(admins, patientClient(t, addr))
			allow(t, admins[len(admins)-1], rules...)
		}
		options := &redis.ClusterOptions{Addrs: cluster.Addrs, Username: limiter, Password: "pw"}
		boundPatiently(options)
		client := redis.NewClusterClient(options)
		t.Cleanup(func() { _ = client.Close() })
		one, both := rightsBuckets(t)
		var errs, objects []string
		for i := range 10 {
			if err := useEverything(client, "", fmt.Sprint("tenant", i), one, both); err != nil {
				errs = append(errs, err.Error())
			}
		}
		for _, admin := range admins {
			objects = append(objects, refused(t, admin)...)
		}
		if slices.Contains(rules, "+cluster|slots") {
			require.Empty(t, errs)
			require.Empty(t, objects)
			continue
		}
		require.NotEmpty(t, errs, "without the map of slots no client finds its node")
		require.Equal(t, []string{"cluster|slots"}, slices.Compact(objects))
	}
}

// sentinelRules are the rights of the user that a client is for the Sentinels.
var sentinelRules = []string{
	"resetkeys", "resetchannels", "&+switch-master", "&+replica-reconf-done", "-@all", "+subscribe",
	"+sentinel|get-master-addr-by-name", "+sentinel|sentinels",
}

func TestFewRightsAreEnoughBehindSentinels(t *testing.T) {
	t.Parallel()
	group := redistest.StartSentinel(t, never)
	admin := patientClient(t, group.Master.Addr)
	allow(t, admin, aclRules(t, false)...)
	for _, addr := range group.Addrs {
		allow(t, patientClient(t, addr), sentinelRules...)
	}
	options := patientFailoverOptions(group)
	options.Username, options.Password = limiter, "pw"
	options.SentinelUsername, options.SentinelPassword = limiter, "pw"
	client := redis.NewFailoverClient(options)
	t.Cleanup(func() { _ = client.Close() })
	one, both := rightsBuckets(t)
	require.NoError(t, useEverything(client, "", "acme", one, both))
	require.Empty(t, refused(t, admin))
	for _, addr := range group.Addrs {
		require.Empty(t, refused(t, patientClient(t, addr)))
	}
}
