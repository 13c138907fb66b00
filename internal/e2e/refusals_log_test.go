package e2e_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimittest"
)

// refusalsLog is a server with nothing configured about observing but a logger, whose lines a test reads.
type refusalsLog struct {
	*inProcess
	log strings.Builder
}

func newRefusalsLog(t *testing.T, configure func(*ratelimit.Config)) *refusalsLog {
	t.Helper()
	r := &refusalsLog{}
	r.inProcess = newInProcess(t, ratelimittest.NewStore(nil), func(cfg *ratelimit.Config) {
		cfg.Observe.Logger = slog.New(slog.NewTextHandler(&r.log, nil))
		if configure != nil {
			configure(cfg)
		}
	})
	return r
}

// refuse has the tenant refused so often, and returns the ids that its client got, each of which has one line.
func (r *refusalsLog) refuse(tenant string, times int) []string {
	r.t.Helper()
	var ids []string
	for range times {
		answer := r.post(request{Query: cheapQuery, Tenant: "blocked", User: tenant})
		require.Equal(r.t, http.StatusForbidden, answer.Status)
		for _, found := range refusalID.FindAllStringSubmatch(answer.Body, -1) {
			ids = append(ids, found[1])
			require.Equal(r.t, 1, strings.Count(r.log.String(), found[1]))
		}
	}
	return ids
}

// byUser makes tenants of users, all of whom are blocked.
func byUser(cfg *ratelimit.Config) {
	cfg.Subject = func(_ context.Context, r *ratelimit.Request) (ratelimit.Subject, error) {
		return ratelimit.Subject{Tenant: r.Header.Get("X-User"), Tier: r.Header.Get("X-Tenant")}, nil
	}
}

func (r *refusalsLog) lines() int { return strings.Count(r.log.String(), "ratelimit: decided") }

func TestWithoutConfigurationTheIDOfARefusalLeadsToALineOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRefusalsLog(t, nil)
		r.post(request{Query: listQuery})
		answer := r.post(request{Query: listQuery})
		id := refusalIDOf(t, answer.Body)
		require.Equal(t, 1, r.lines())
		require.Regexp(t, "refusalId="+id+` outcome=limited code=RATE_LIMITED tenant=free.* limits\.0\.refuses=true`, r.log.String())
		require.NotContains(t, r.log.String(), "threshold_crossed", "other facts are for observers")
	})
}

func TestTheFirstRefusalOfATenantInASecondHasAnIDAndAFloodFewMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRefusalsLog(t, byUser)
		require.Len(t, r.refuse("flood", 300), 11, "the first of the second, and ten more a minute")
		for second := range 120 {
			sleep(time.Second)
			ids := r.refuse("flood", 20)
			if second%60 != 59 {
				require.Len(t, ids, 1, second)
			}
		}
		require.Equal(t, 11+118+2*11, r.lines())
		require.Len(t, r.refuse("quiet", 3), 3, "the flood of one tenant is no matter of another")
		require.Contains(t, r.log.String(), "untold=")
	})
}

func TestTheLogOfRefusalsIsBoundedHoweverManyTenantsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRefusalsLog(t, byUser)
		for range 3 {
			before, ids := r.lines(), 0
			for tenant := range 1000 {
				ids += len(r.refuse(fmt.Sprint("tenant-", tenant), 1))
			}
			require.Equal(t, 100, r.lines()-before)
			require.Equal(t, 100, ids)
			sleep(time.Second)
		}
	})
}

func TestTheFirstRefusalOfEachTenantGoesBeforeFurtherOnesOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRefusalsLog(t, byUser)
		for tenant := range 55 {
			require.NotEmpty(t, r.refuse(fmt.Sprint("tenant-", tenant), 8), tenant)
		}
	})
}

func TestARefusalThatNobodyKeepsHasNoID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := event.NewChannel(1)
		full.Observe(t.Context(), event.RefusedRepeatedly{})
		for name, observe := range map[string]ratelimit.ObserveConfig{
			"a full channel":      {Observer: full},
			"one among observers": {Observer: event.All(full, event.NewLogger(slog.New(slog.DiscardHandler)))},
			"a level that is off": {Logger: slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelWarn}))},
			"none wanted":         {Refusals: ratelimit.None, Observer: event.Func(func(context.Context, event.Event) {})},
			"a panic":             {Observer: event.Func(func(context.Context, event.Event) { panic("on purpose") })},
		} {
			r := newRefusalsLog(t, func(cfg *ratelimit.Config) {
				byUser(cfg)
				observe.Logger = cmp.Or(observe.Logger, cfg.Observe.Logger)
				cfg.Observe = observe
			})
			require.Empty(t, r.refuse("acme", 1), name)
			cfgTracer := observe
			cfgTracer.TracerProvider = trace.NewTracerProvider()
			traced := newRefusalsLog(t, func(cfg *ratelimit.Config) {
				byUser(cfg)
				cfg.Observe = cfgTracer
				cfg.Observe.Logger = discard
			})
			answer := traced.post(request{Query: cheapQuery, Tenant: "blocked", User: "acme"})
			require.Len(t, refusalIDOf(t, answer.Body), 26, "%s: a span has it", name)
		}
		unsampled := newRefusalsLog(t, func(cfg *ratelimit.Config) {
			cfg.Observe.TracerProvider = trace.NewTracerProvider(trace.WithSampler(trace.NeverSample()))
			cfg.Observe.Refusals = ratelimit.None
		})
		require.Empty(t, unsampled.refuse("acme", 1))
	})
}

func TestAServerChoosesHowManyRefusalsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct{ all, ofTenant, want int }{
			{0, 3, 3}, {0, ratelimit.None, 100}, {1000, ratelimit.None, 150}, {5, 0, 2}, {5, 4, 4}, {1, 0, 1},
		} {
			r := newRefusalsLog(t, func(cfg *ratelimit.Config) {
				byUser(cfg)
				cfg.Observe.Refusals, cfg.Observe.TenantRefusals = c.all, c.ofTenant
			})
			require.Len(t, r.refuse("acme", 150), c.want, c)
		}
	})
}

func TestAMetricCountsTheRefusalsThatAreNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := &instruments{t: t}
		r := newRefusalsLog(t, func(cfg *ratelimit.Config) {
			byUser(cfg)
			i.configure(cfg)
			cfg.Observe.TracerProvider = nil
			cfg.Observe.TenantRefusals = 4
		})
		for range 10 {
			r.post(request{Query: cheapQuery, Tenant: "blocked", User: "acme"})
		}
		require.Equal(t, map[string]float64{"": 6}, i.sums("ratelimit.refusals.untold", ""))
		require.Equal(t, map[string]float64{"blocked": 10}, i.sums("ratelimit.decisions", "ratelimit.outcome"))
	})
}

func TestAFloodOfErrorsOfTheServerFillsNoLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, refusals := range []int{0, ratelimit.None} {
			r := newRefusalsLog(t, func(cfg *ratelimit.Config) {
				cfg.Observe.Refusals = refusals
				cfg.Subject = func(context.Context, *ratelimit.Request) (ratelimit.Subject, error) {
					return ratelimit.Subject{}, errors.New("the directory of customers is away")
				}
			})
			ids := 0
			for range 500 {
				answer := r.post(request{Query: cheapQuery})
				require.Equal(t, http.StatusServiceUnavailable, answer.Status)
				require.NotContains(t, answer.Body, "directory")
				ids += len(refusalID.FindAllString(answer.Body, -1))
			}
			lines := strings.Count(r.log.String(), "the directory of customers is away")
			require.Equal(t, ids, lines)
			require.Positive(t, lines)
			require.LessOrEqual(t, lines, 11)
		}
	})
}
