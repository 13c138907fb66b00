package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// extensionOf returns the text of extensions.rateLimit.
func extensionOf(t *testing.T, r reply) string {
	t.Helper()
	var body struct {
		Extensions map[string]json.RawMessage `json:"extensions"`
	}
	require.NoError(t, json.Unmarshal([]byte(r.Body), &body), r.Body)
	return string(body.Extensions["rateLimit"])
}

func TestAShortAnswerIsAboutOneLimitWhateverItsNumbers(t *testing.T) {
	t.Parallel()
	// No limit holds more points.
	const most = "4503599627370496"
	f := newFixture(t, func(cfg *ratelimit.Config) {
		underLimits(t, "calendar: {capacity: "+most+", per: year, window: calendar}")(cfg)
		cfg.Settlement.Refund = true
		cfg.Pricing.InvalidDocument = ratelimit.None
	})
	got := extensionOf(t, f.post(request{Query: half}))
	require.JSONEq(t, `{"cost": 22, "charged": 22, "actual": 22, "limit": "calendar", "unit": "points", "capacity": `+most+`,
		"remaining": 4503599627370474, "resetAfter": `+numberIn(t, got, "resetAfter")+`}`, got)
}

// numberIn returns a number as it is written in an object.
func numberIn(t *testing.T, object, key string) string {
	t.Helper()
	var values map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(object), &values))
	return string(values[key])
}

func TestTheLimitThatIsShownCountsPointsWhereOneDoes(t *testing.T) {
	t.Parallel()
	const several = "minute: {capacity: 100, per: minute}, day: {capacity: 1000, per: day}, requests: {unit: requests, capacity: 4, per: day}"
	f := limited(t, several)
	for n, test := range []struct {
		limit  string
		limits int
	}{
		{"minute", 0},
		{"minute", 0}, // two of four requests are used, which is not more than half
		{"minute", 3}, // three are, and requests will refuse before points
	} {
		reply := f.post(request{Query: `{ users(first: 1) { name } }`})
		got := reply.rateLimit(t)
		require.Equal(t, test.limit, got["limit"], n)
		require.Equal(t, "points", got["unit"], n)
		limits, _ := got["limits"].([]any)
		require.Len(t, limits, test.limits, "%d: %s", n, reply.Body)
		require.NotContains(t, reply.Header.Get("RateLimit"), "day", n)
		require.Equal(t, test.limits > 0, strings.Contains(reply.Header.Get("RateLimit"), `"requests";r=1`), n)
		require.Equal(t, test.limits > 0, strings.Contains(reply.Header.Get("RateLimit-Policy"), `"requests";q=4`), n)
	}

	other := limited(t, "requests: {unit: requests, capacity: 4, per: day}").post(request{Query: half}).rateLimit(t)
	require.Equal(t, map[string]any{
		"cost": 22.0, "charged": 0.0, "limit": "requests", "unit": "requests", "capacity": 4.0, "remaining": 3.0, "resetAfter": 21600.0,
	}, other)
}

func TestAShortAnswerSaysWhatIsNotUsual(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	byUser := f.post(request{Query: cheapQuery, Tenant: "levels", Team: "web", User: "ada"}).rateLimit(t)
	require.Equal(t, "user", byUser["level"])
	require.NotContains(t, byUser, "mode")
	require.Equal(t, "warn", f.post(request{Query: cheapQuery, Tenant: "warned"}).rateLimit(t)["mode"])

	f.store.Fail(bucket.ErrUnavailable)
	away := f.post(request{Query: cheapQuery}).rateLimit(t)
	require.Equal(t, true, away["storeUnavailable"])
	require.NotContains(t, away, "limits")
}

func TestARefusalAndAWarningSayEverything(t *testing.T) {
	t.Parallel()
	const page = "https://example.com/limits"
	for tenant, status := range map[string]int{"free": http.StatusTooManyRequests, "warned": http.StatusOK} {
		f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Response.HelpURL = page })
		first := f.post(request{Query: listQuery, Tenant: tenant})
		require.NotContains(t, first.Body, page)
		second := f.post(request{Query: listQuery, Tenant: tenant})
		require.Equal(t, status, second.Status, tenant)
		for _, key := range []string{"limits", "tier", "mode", "replayed"} {
			require.Contains(t, second.rateLimit(t), key, tenant)
		}
		read, err := ratelimitclient.FromResponse([]byte(second.Body))
		require.NoError(t, err)
		if tenant == "free" {
			require.Equal(t, page, read.Refusal.HelpURL)
		}
	}
}

func TestADocumentThatDoesNotValidateIsAnsweredInFullToWhoeverAsks(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	for word, full := range map[string]bool{"": false, "full": true, "report": false, "rubbish": false} {
		for _, query := range []string{`{ nope }`, `{ `} {
			reply := f.post(request{Query: query, Cost: word})
			require.Equal(t, full, strings.Contains(extensionOf(t, reply), `"limits":[{"name":"minute"`), "%q: %s", word, reply.Body)
			require.EqualValues(t, 1, reply.rateLimit(t)["charged"])
		}
	}
}

func TestARefusedChargeIsAnsweredWithEveryLimit(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.resolver.OnExport = func(ctx context.Context, rows int) error { return ratelimit.Charge(ctx, "exports", int64(rows)) }
	require.NotContains(t, f.post(request{Query: `{ export(rows: 4) }`}).rateLimit(t), "limits")
	refused := f.post(request{Query: `{ export(rows: 7) }`})
	require.Equal(t, ratelimitclient.CodeRateLimited, refused.errorCode(t))
	require.Contains(t, extensionOf(t, refused), `"name":"exports"`)
	require.Contains(t, extensionOf(t, refused), `"exceeded":true`)
	require.Contains(t, refused.Header.Get("RateLimit"), `:exports";r=6;t=360`)

	// What is charged after it does not hide it.
	f.resolver.OnExport = func(ctx context.Context, rows int) error {
		err := ratelimit.Charge(ctx, "exports", int64(rows))
		return errors.Join(err, ratelimit.Charge(ctx, "exports", 1))
	}
	require.Contains(t, extensionOf(t, f.post(request{Query: `{ export(rows: 7) }`})), `"name":"exports"`)
}

func TestAServerAndEachClientCanAskForEverything(t *testing.T) {
	t.Parallel()
	always := newFixture(t, func(cfg *ratelimit.Config) { (&instruments{t: t}).configure(cfg); cfg.Response.Full = true })
	asked := newFixture(t, nil).post(request{Query: half, Cost: "Full"})
	require.Contains(t, asked.rateLimit(t), "actual", "what it came to is added up")
	require.Equal(t, extensionOf(t, asked), extensionOf(t, always.post(request{Query: half})))

	onlyTold := newFixture(t, func(cfg *ratelimit.Config) { cfg.Response.Full = true })
	require.NotContains(t, onlyTold.post(request{Query: half}).rateLimit(t), "actual", "nobody asks what it came to")
	require.Contains(t, onlyTold.post(request{Query: half, Cost: "full"}).rateLimit(t), "actual")

	socket := newFixture(t, nil).dial("free", http.Header{"GraphQL-Cost": {"full"}})
	require.NotContains(t, socket.run("1", request{Query: half})[0], `"limits"`, "the header of an upgrade is that of no operation")
	require.Contains(t, socket.run("2", request{Query: half, Cost: "full"})[0], `"limits"`)
}

func TestWhatAnOperationCameToIsToldWhereItCanChangeTheCharge(t *testing.T) {
	t.Parallel()
	i := &instruments{t: t}
	measured := newFixture(t, i.configure).post(request{Query: cheapQuery}).rateLimit(t)
	require.NotContains(t, measured, "actual", "metrics read it, and a client could do nothing with it")
	for name, settlement := range map[string]ratelimit.SettlementConfig{
		"refund": {Refund: true}, "excess": {ChargeExcess: true},
	} {
		f := newFixture(t, func(cfg *ratelimit.Config) { cfg.Settlement = settlement })
		require.Contains(t, f.post(request{Query: cheapQuery}).rateLimit(t), "actual", name)
		require.NotContains(t, f.post(request{Query: cheapQuery, Tenant: plenty}).rateLimit(t), "actual", "%s: nothing was charged", name)
	}
}

func TestATrialDoesNotChangeWhetherAnAnswerSaysWhatTheOperationCameTo(t *testing.T) {
	t.Parallel()
	const requests, trial = "requests: {unit: requests, capacity: 1, per: day, mode: warn}", "minute: {capacity: 100, per: minute, mode: shadow}, "
	i := &instruments{t: t}
	for name, test := range map[string]struct {
		configure func(*ratelimit.Config)
		cost      string
		told      bool
	}{
		"short":   {func(*ratelimit.Config) {}, "", false},
		"full":    {func(cfg *ratelimit.Config) { cfg.Response.Full = true }, "", false},
		"asked":   {func(*ratelimit.Config) {}, "full", true},
		"metrics": {func(cfg *ratelimit.Config) { i.configure(cfg); cfg.Response.Full = true }, "", true},
	} {
		answers := map[string][]string{}
		for _, points := range []string{trial, ""} {
			f := newFixture(t, func(cfg *ratelimit.Config) {
				underLimits(t, points+requests)(cfg)
				cfg.Settlement.Refund = true
				test.configure(cfg)
			})
			for range 2 { // The second one is warned, and so full.
				got := f.post(request{Query: cheapQuery, Cost: test.cost}).rateLimit(t)
				delete(got, "resetAfter")
				_, told := got["actual"]
				require.Equal(t, test.told, told, "%s under %q: %v", name, points, got)
				answers[points] = append(answers[points], fmt.Sprint(slices.Sorted(maps.Keys(got))))
			}
		}
		require.Equal(t, answers[""], answers[trial], name)
	}
}
