package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
)

var headerForms = []struct {
	name string
	form ratelimit.HeaderForm
}{
	{"by default", 0},
	{"HeadersDraft10", ratelimit.HeadersDraft10},
	{"HeadersDraft6", ratelimit.HeadersDraft6},
	{"HeadersLegacy", ratelimit.HeadersLegacy},
	{"HeadersGitHub", ratelimit.HeadersGitHub},
	{"HeadersDraft10|HeadersDraft6|HeadersGitHub", ratelimit.HeadersDraft10 | ratelimit.HeadersDraft6 | ratelimit.HeadersGitHub},
	{"HeadersNone", ratelimit.HeadersNone},
}

const mutate = `mutation { createUser(input: {name: "Grace"}) { id } }`

var headerOutcomes = []struct {
	name string
	// requests are sent one after the other; the answer to the last is looked at.
	requests []request
	away     bool
}{
	{name: "admitted", requests: []request{{Query: cheapQuery}}},
	{name: "limited", requests: []request{{Query: listQuery}, {Query: listQuery}}},
	{name: "too expensive for a limit", requests: []request{{Query: `{ users(first: 100) { name } }`}}},
	{name: "too expensive for the tier", requests: []request{{Query: `{ users(first: 1000) { name } }`}}},
	{name: "blocked", requests: []request{{Query: cheapQuery, Tenant: "blocked"}}},
	{name: "warned", requests: []request{{Query: half, Tenant: "warned"}, {Query: half, Tenant: "warned"}}},
	{name: "shadowed", requests: []request{{Query: half, Tenant: "shadow"}, {Query: half, Tenant: "shadow"}}},
	{name: "several levels", requests: []request{{Query: cheapQuery, Tenant: "levels", Team: "web", User: "ada"}}},
	{name: "several levels, all asked for", requests: []request{{Query: cheapQuery, Tenant: "levels", Team: "web", User: "ada", Cost: "full"}}},
	{name: "replayed", requests: []request{{Query: mutate, Key: testKey}, {Query: mutate, Key: testKey}}},
	{name: "unlimited", requests: []request{{Query: cheapQuery, Tenant: "unlimited"}}},
	{name: "store away, open", requests: []request{{Query: cheapQuery}}, away: true},
	{name: "store away, closed", requests: []request{{Query: cheapQuery, Tenant: "closed"}}, away: true},
}

// TestEveryFormOfHeadersOfEveryOutcome compares all headers but those of the transport with a golden file,
// at a time that is known: 2000-01-01T00:00:00Z and half a second, or 946684800.5.
func TestEveryFormOfHeadersOfEveryOutcome(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, form := range headerForms {
		for _, outcome := range headerOutcomes {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Second / 2) //nolint:forbidigo // in a bubble, where it takes no time
				store := ratelimittest.NewStore(&ratelimittest.Clock{})
				p := newInProcess(t, store, func(cfg *ratelimit.Config) {
					cfg.Response = ratelimit.ResponseConfig{Headers: form.form, ExposeHeaders: true}
				})
				var last reply
				for _, r := range outcome.requests {
					if outcome.away {
						store.Fail(bucket.ErrUnavailable)
					}
					last = p.post(r)
				}
				fmt.Fprintf(&b, "# %s, %s: %d\n%s\n", form.name, outcome.name, last.Status, ownHeaders(last.Header))
				requireConsistent(t, form.form, last)
			})
		}
	}
	golden(t, "headers", b.String())
}

// ownHeaders writes all headers but those of the transport, one a line.
func ownHeaders(header http.Header) string {
	var written []string
	for name, values := range header {
		if name != "Content-Type" {
			written = append(written, name+": "+strings.Join(values, " | ")+"\n")
		}
	}
	slices.Sort(written)
	return strings.Join(written, "")
}

// requireConsistent checks what holds for all forms: no time is later than Retry-After and none earlier
// than what the answer itself says, and what is exposed is what is sent.
func requireConsistent(t *testing.T, form ratelimit.HeaderForm, r reply) {
	t.Helper()
	response, err := ratelimitclient.FromResponse([]byte(r.Body))
	require.NoError(t, err)
	retry, retries := ratelimitclient.RetryAfter(r.Header)
	require.Equal(t, response.Refusal != nil && response.Refusal.RetryAfter > 0, retries)
	if retries {
		require.GreaterOrEqual(t, retry, response.Refusal.RetryAfter)
	}
	for _, name := range []string{"RateLimit-Reset", "X-RateLimit-Reset"} {
		text := r.Header.Get(name)
		if text == "" || !retries {
			continue
		}
		reset, err := strconv.ParseInt(text, 10, 64)
		require.NoError(t, err)
		at := time.Duration(reset) * time.Second
		if form&ratelimit.HeadersGitHub != 0 && strings.HasPrefix(name, "X-") {
			at = time.Until(time.Unix(reset, 0))
		}
		require.GreaterOrEqual(t, at, response.Refusal.RetryAfter, name)
		// A moment in whole seconds can lie up to a second later than a duration in whole seconds.
		require.LessOrEqual(t, at, retry+time.Second, name)
	}
	sent := http.Header{}
	for name := range r.Header {
		if name != "Content-Type" && name != "Access-Control-Expose-Headers" {
			sent[name] = nil
		}
	}
	exposed := http.Header{}
	if list := r.Header.Get("Access-Control-Expose-Headers"); list != "" {
		for name := range strings.SplitSeq(list, ", ") {
			exposed[http.CanonicalHeaderKey(name)] = nil
		}
	}
	require.Equal(t, sent, exposed)
}

func TestExposedHeadersJoinThoseOfTheApplication(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before []string
		want   string
	}{
		"none":                    {nil, "RateLimit, RateLimit-Policy"},
		"others":                  {[]string{"X-Request-Id, ETag", "Link"}, "X-Request-Id, ETag, Link, RateLimit, RateLimit-Policy"},
		"some of ours, in small":  {[]string{"ratelimit"}, "ratelimit, RateLimit-Policy"},
		"everything, no cookies":  {[]string{"*"}, "*, RateLimit, RateLimit-Policy"},
		"what nobody would write": {[]string{" , ,"}, "RateLimit, RateLimit-Policy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newInProcess(t, ratelimittest.NewStore(&ratelimittest.Clock{}), func(cfg *ratelimit.Config) {
				cfg.Response.ExposeHeaders = true
			})
			limited := p.handler
			p.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header()["Access-Control-Expose-Headers"] = test.before
				limited.ServeHTTP(w, r)
			})
			reply := p.post(request{Query: cheapQuery})
			require.Equal(t, []string{test.want}, reply.Header.Values("Access-Control-Expose-Headers"))
		})
	}
}

func TestNothingIsExposedUnlessAsked(t *testing.T) {
	t.Parallel()
	p := newInProcess(t, ratelimittest.NewStore(&ratelimittest.Clock{}), nil)
	require.Empty(t, p.post(request{Query: cheapQuery}).Header.Values("Access-Control-Expose-Headers"))
}

func TestTheStatusOfARefusalCanBeChosenByItsCode(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Response.Status = map[string]int{
			ratelimitclient.CodeTenantBlocked: http.StatusPaymentRequired, ratelimitclient.CodeCostLimitExceeded: http.StatusOK,
		}
	})
	require.Equal(t, http.StatusPaymentRequired, f.post(request{Query: cheapQuery, Tenant: "blocked"}).Status)
	dear := f.post(request{Query: `{ users(first: 100) { name } }`})
	require.Equal(t, http.StatusOK, dear.Status)
	require.Equal(t, ratelimitclient.CodeCostLimitExceeded, dear.errorCode(t))
	f.post(request{Query: listQuery})
	require.Equal(t, http.StatusTooManyRequests, f.post(request{Query: listQuery}).Status, "other codes keep theirs")
}

func TestFormsOfHeadersThatContradictEachOtherAreMistakes(t *testing.T) {
	t.Parallel()
	for _, form := range []ratelimit.HeaderForm{
		ratelimit.HeadersNone | ratelimit.HeadersDraft6, ratelimit.HeadersLegacy | ratelimit.HeadersGitHub,
	} {
		message := errorOf(func() { newFixture(t, func(cfg *ratelimit.Config) { cfg.Response.Headers = form }) })
		require.Contains(t, message, "Response.Headers joins")
	}
}
