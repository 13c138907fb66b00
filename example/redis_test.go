package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/event/redisstream"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory/redisdirectory"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisfeed"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/usage/redisusage"
)

func TestTwoProcessesOnOneRedisSpendOneBudget(t *testing.T) {
	t.Parallel()
	replies := onRedis(t, func(address string) []reply {
		one, two := startProcess(t, "-redis", address), startProcess(t, "-redis", address)
		return []reply{
			post(t, one.url, request{key: "demo-free", query: search}),
			post(t, two.url, request{key: "demo-free", query: search}),
			post(t, one.url, request{key: "demo-free", query: search}),
			post(t, two.url, request{key: "demo-pro", query: search}),
		}
	})
	replies[0].requireCharged(t, 611)
	replies[1].requireRefused(t, 611)
	replies[2].requireRefused(t, 611)
	left := limit(t, replies[1].rateLimit(t), "minute").Remaining
	require.Less(t, left, int64(611), "what the first process took is gone in the second")
	require.GreaterOrEqual(t, left, int64(1000-611), "and no more than that")
	replies[3].requireCharged(t, 611)
}

func TestTwoProcessesOnOneRedisReplayOneKey(t *testing.T) {
	t.Parallel()
	replies := onRedis(t, func(address string) []reply {
		one, two := startProcess(t, "-redis", address), startProcess(t, "-redis", address)
		create := request{key: "demo-pro", once: "two-processes-0001", query: createIssue}
		other := create
		other.query = `mutation { addComment(input: {issueId: "I_1", body: "x"}) { comment { id } } }`
		elsewhere := create
		elsewhere.key = "demo-enterprise"
		return []reply{
			post(t, one.url, create),
			post(t, two.url, create),
			post(t, one.url, create),
			post(t, two.url, other),
			post(t, two.url, elsewhere),
		}
	})
	replies[0].requireCharged(t, 20)
	require.Empty(t, replies[0].header.Get("Idempotent-Replayed"))
	for _, again := range replies[1:3] {
		require.Equal(t, http.StatusOK, again.status, again.body)
		require.Equal(t, "true", again.header.Get("Idempotent-Replayed"))
		require.True(t, again.rateLimit(t).Replayed)
		require.Zero(t, again.rateLimit(t).Charged)
		require.Equal(t, withoutRateLimit(t, replies[0].body), withoutRateLimit(t, again.body))
	}
	require.Equal(t, http.StatusUnprocessableEntity, replies[3].status)
	require.Equal(t, ratelimitclient.CodeKeyReused, replies[3].refusal(t).Code)
	replies[4].requireCharged(t, 20)
}

func TestTheServerStartsWithoutRedisAndServesByItsFailModes(t *testing.T) {
	t.Parallel()
	// A port that is freed for the test could be taken by another one; nothing listens on port 1.
	i := startEnding(t, exitFailed, "-redis", "127.0.0.1:1")

	open := post(t, i.url, request{key: "demo-free", query: `{ viewer { login } }`})
	require.Equal(t, http.StatusOK, open.status, open.body)
	require.JSONEq(t, `{"data":{"viewer":{"login":"mira"}}}`, withoutRateLimit(t, open.body))
	require.True(t, open.rateLimit(t).StoreUnavailable)
	require.EqualValues(t, 3, open.rateLimit(t).Charged)

	for name, closed := range map[string]request{
		"an anonymous caller":                {query: `{ viewer { login } }`},
		"a mutation under a key, may repeat": {key: "demo-pro", once: "redis-is-away-1", query: createIssue},
	} {
		got := post(t, i.url, closed)
		require.Equal(t, http.StatusServiceUnavailable, got.status, name)
		require.NotEmpty(t, got.header.Get("Retry-After"), name)
		require.Equal(t, ratelimitclient.CodeUnavailable, got.refusal(t).Code, name)
		require.JSONEq(t, `null`, data(t, got), name)
		require.True(t, got.rateLimit(t).StoreUnavailable, name)
	}
	i.stop()
	require.Contains(t, i.stderr.String(), "what was admitted while the default store was away is not charged (tenants: 2)", "demo-free, and all together: the backstop")
}

func TestTheServerCountsAsSoonAsRedisAnswers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Freeze(t)
	i := startExample(t, "-redis", server.Addr)
	viewer := request{key: "demo-free", query: `{ viewer { login } }`}
	require.True(t, post(t, i.url, viewer).rateLimit(t).StoreUnavailable)

	server.Thaw(t)
	var got reply
	poll(t, "Redis", func() bool {
		got = post(t, i.url, viewer)
		return !got.rateLimit(t).StoreUnavailable
	})
	got.requireCharged(t, 3)
}

func TestWithoutItsRedisTheProgramSaysSoOnceInItsOwnWords(t *testing.T) {
	t.Parallel()
	i := startProcessEnding(t, exitFailed, "-redis", freeAddress(t))
	require.True(t, post(t, i.url, request{key: "demo-free", query: `{ viewer { login } }`}).rateLimit(t).StoreUnavailable)
	i.stop()
	for line := range strings.Lines(i.stderr.String()) {
		require.True(t, strings.HasPrefix(line, "time=") || strings.HasPrefix(line, "example: "), i.stderr.String())
	}
	require.Equal(t, 1, strings.Count(i.stderr.String(), "the store is away"), i.stderr.String())
}

func TestAWrongRedisAddressIsSaidClearlyAndNeverRepeated(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"sesame":                   "neither host:port nor a redis://, rediss:// or unix:// URL",
		"http://:sesame@127.0.0.1": "unknown scheme; redis://, rediss:// or unix:// fits",
		"redis://:sesame@a:1/name": "not a valid Redis URL",
		"127.0.0.1:6379,sesame":    "address 2 of 2",
		"127.0.0.1:6379/sesame":    "a database stands in a URL",
	} {
		said := runFails(t, "-redis", address)
		require.Contains(t, said, "example: -redis: ")
		require.Contains(t, said, want)
		require.NotContains(t, said, "sesame")
	}
}

func TestARefusalIsFoundInRedisAndASwitchReachesEveryProcess(t *testing.T) {
	t.Parallel()
	var address string
	var one, two *instance
	replies := onRedis(t, func(at string) []reply {
		address = at
		one, two = startProcess(t, "-redis", at), startProcess(t, "-redis", at)
		return []reply{
			post(t, one.url, request{key: "demo-free", query: search}),
			post(t, two.url, request{key: "demo-free", query: search}),
		}
	})
	replies[1].requireRefused(t, 611)
	id := replies[1].refusal(t).ID
	client := patientClient(t, address)
	reader, err := report.NewReader(report.Place{Client: client, Namespace: "example"})
	require.NoError(t, err)
	var found *report.Refusal
	require.Eventually(t, func() bool {
		found, err = reader.Refusal(t.Context(), id)
		return err == nil
	}, 20*time.Second, 100*time.Millisecond)
	require.Equal(t, "demo-free", found.Tenant)
	require.Positive(t, found.Limits[0].Origin.Line)

	switches, err := redisswitch.New(redisswitch.Config{Client: client, Namespace: "example"})
	require.NoError(t, err)
	require.NoError(t, switches.Set(t.Context(), event.ModeSwitch{
		Tenant: "demo-free", AtMost: "shadow", Until: time.Now().Add(time.Hour), Reason: "incident", By: "jo",
	}))
	for _, p := range []*instance{one, two} {
		require.Eventually(t, func() bool {
			return post(t, p.url, request{key: "demo-free", query: search}).status == http.StatusOK
		}, 20*time.Second, 50*time.Millisecond)
	}
}

func TestUsageIsThereForWhoeverCollectsIt(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := patientClient(t, server.Addr)
	p := startProcess(t, "-redis", server.Addr)
	post(t, p.url, request{key: "demo-enterprise", query: search}).requireCharged(t, 611)
	post(t, p.url, request{key: "demo-free", query: search}).requireCharged(t, 611)
	post(t, p.url, request{key: "demo-free", query: search}).requireRefused(t, 611)

	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Namespace: "example"})
	require.NoError(t, err)
	source, err := redisusage.NewReader(redisusage.Config{Client: client, Namespace: "example"}, store)
	require.NoError(t, err)
	poll(t, "who was counted, and what was refused", func() bool {
		found, next, err := source.Found(t.Context(), "")
		require.NoError(t, err)
		require.Empty(t, next)
		counted := int64(0)
		for _, c := range found {
			require.Equal(t, "demo-enterprise", c.Tenant, "no other tier counts")
			read, err := source.ReadUsage(t.Context(), c.Tenant, c.Hour, c.Grade)
			require.NoError(t, err)
			counted += read.Counts[0].Net()
		}
		refused := int64(0)
		for _, hour := range []time.Time{time.Now().Add(-time.Hour), time.Now()} {
			rows, _, err := source.Refused(t.Context(), hour, "")
			require.NoError(t, err)
			for _, r := range rows {
				if r.Tenant == "demo-free" && r.Limit == "tenant:minute" {
					refused += r.N
				}
			}
		}
		return counted > 0 && refused == 1
	})
}

func TestRefusalsReachTheStreamsThatWebhooksAreToldFrom(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := patientClient(t, server.Addr)
	p := startProcess(t, "-redis", server.Addr)
	post(t, p.url, request{key: "demo-free", query: search}).requireCharged(t, 611)
	post(t, p.url, request{key: "demo-free", query: search}).requireRefused(t, 611)
	for _, topic := range []string{"ratelimit.denials", "ratelimit.thresholds"} {
		poll(t, topic, func() bool {
			entries, err := client.XRange(t.Context(), redisstream.Key("example", topic), "-", "+").Result()
			require.NoError(t, err)
			return len(entries) > 0 && entries[0].Values["subject"] == "demo-free"
		})
	}
}

func TestWhatIsPublishedIntoRedisReachesProcessesThatFollow(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := patientClient(t, server.Addr)
	p := startProcess(t, "-redis", server.Addr, "-follow")
	search := request{key: "demo-pro", query: search}
	post(t, p.url, search).requireCharged(t, 611) // by the policy that is built in

	feed, err := redisfeed.New(redisfeed.Config{Client: client, Namespace: "example"})
	require.NoError(t, err)
	document := []byte("version: 1\ndefault: free\ntiers:\n  free: {limits: {minute: {capacity: 700, per: minute}}}\n  more: {limits: {minute: {capacity: 9000, per: minute}}}\n")
	require.NoError(t, feed.Publish(t.Context(), &policy.Revision{Number: 1, Document: document, Hash: policy.HashOf(document), Published: time.Now()}, 0))
	poll(t, "the revision", func() bool { return post(t, p.url, search).status == http.StatusTooManyRequests })
	reader, err := report.NewReader(report.Place{Client: client, Namespace: "example"})
	require.NoError(t, err)
	poll(t, "a report", func() bool {
		all, err := reader.Summary(t.Context(), time.Minute)
		return err == nil && len(all.Instances) == 1 && all.Instances[0].Policy.Revision == 1
	})

	records, err := redisdirectory.New(redisdirectory.Config{Client: client, Namespace: "example"})
	require.NoError(t, err)
	_, err = records.Put(t.Context(), "demo-pro", []byte(`{"tier": "more"}`), 0)
	require.NoError(t, err)
	poll(t, "the record", func() bool { return post(t, p.url, search).status == http.StatusOK })
}

// patientClient is that of a test: what it asks has all the time, and a deadline of a tenth of a second only where the test sets one.
func patientClient(t *testing.T, address string) redis.UniversalClient {
	t.Helper()
	client, err := redisclient.Open(address, redisclient.Config{DialTimeout: redistest.Patience, SocketTimeout: redistest.Patience})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}
