package ratelimit

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/internal/show"
	"github.com/gqlgen-ratelimit/ratelimit/internal/sink"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// signal puts status and headers of the decision where the Handler finds them.
func (e *Extension) signal(x *sink.Exchange, d *decision.Decision) {
	if x == nil {
		return
	}
	cfg, status := &e.cfg.Response, 0
	if d.Refusal != nil {
		status = cfg.statusOf(d.Refusal.Outcome.Code())
	}
	var expose []string
	if cfg.ExposeHeaders {
		expose = show.HeaderNames
	}
	x.Decide(status, expose, func(header http.Header) { show.Headers(header, d, show.Form(cfg.Headers)) })
}

// withExtension adds extensions.rateLimit to a response.
func withExtension(response *graphql.Response, d *decision.Decision) *graphql.Response {
	if d.Outcome == decision.Exempt && d.Breakdown == nil {
		return response
	}
	if response.Extensions == nil {
		response.Extensions = make(map[string]any, 1)
	}
	response.Extensions[show.ExtensionKey] = show.Extension(d)
	return response
}

// oddity is a mistake that only traffic shows. Each is logged once.
type oddity struct{ what, tenant, name, limit string }

// How many oddities are remembered, and for how long.
const (
	oddities = 1024
	forever  = 100 * 365 * 24 * time.Hour
)

// warnOnce logs an oddity that was not logged before.
func (e *Extension) warnOnce(ctx context.Context, o oddity, message string, attributes ...slog.Attr) {
	if n, _ := e.warned.Count(o, time.Now(), forever); n == 1 {
		e.cfg.Observe.Logger.LogAttrs(ctx, slog.LevelWarn, "ratelimit: "+message, attributes...)
	}
}

// warnOfTier logs a tier that the policy does not know.
func (e *Extension) warnOfTier(ctx context.Context, d *decision.Decision) {
	if carried := d.Subject.Tier; carried != "" && carried != d.Rules.Tier {
		e.warnOnce(ctx, oddity{what: "tier", name: carried}, "a subject carries a tier that the policy does not have: it is judged by another",
			slog.String("carried", shortened(carried)), slog.String("tier", d.Rules.Tier))
	}
}

// warnOfUnit logs a charge in a unit that no limit of the policy counts.
func (e *Extension) warnOfUnit(ctx context.Context, rules *tiers.Rules, unit bucket.Unit) {
	if policy := e.cfg.Policy.Snapshot(); !counts(judged(rules), unit) && !policy.Counts(unit) {
		e.warnOnce(ctx, oddity{what: "unit", name: string(unit)}, "ratelimit.Charge is given a unit that no limit of the policy counts",
			slog.String("unit", shortened(string(unit))), slog.Any("units", policy.Units()))
	}
}

// warnOfOverrides logs override records that change nothing.
func (e *Extension) warnOfOverrides(ctx context.Context, tenant string, result *bucket.Result) {
	for _, o := range result.UnusedOverrides() {
		e.warnOnce(ctx, oddity{"override", tenant, o.Owner.Level.String() + ":" + o.Owner.Name, o.Limit},
			"an override record changes nothing: the policy has no such limit, or its numbers make none with those of the policy",
			slog.String("tenant", shortened(tenant)), slog.String("level", o.Owner.Level.String()),
			slog.String("owner", shortened(o.Owner.Name)), slog.String("limit", o.Limit), slog.String("actor", o.Actor))
	}
}

// shortened cuts a name from outside to what a line of a log can bear.
func shortened(name string) string { return name[:min(len(name), 64)] }
