package preview

import (
	"context"
	"fmt"
	"iter"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/digest/sample"
	"github.com/gqlgen-ratelimit/ratelimit/internal/previewreport"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
	"github.com/gqlgen-ratelimit/ratelimit/tiers/simulate"
)

// ErrKey says that the instances record under another key: it is [sample.ErrKey].
var ErrKey = sample.ErrKey

// Run compares two policies on what instances have recorded: redisdigest.Reader.Chunks, for example. Chunks that cannot be read
// are counted. The error is that of the configuration, [ErrKey], that of the context, or the first other one of the sequence.
func Run(ctx context.Context, chunks iter.Seq2[digest.Chunk, error], cfg Config) (*previewreport.Report, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	taken, err := sample.Read(ctx, chunks, cfg.Key, cfg.Operations)
	if err != nil {
		return nil, err
	}
	before, err := replay(ctx, cfg.Before, &cfg, taken, false)
	if err != nil {
		return nil, err
	}
	after, err := replay(ctx, cfg.After, &cfg, taken, cfg.Enforced)
	if err != nil {
		return nil, err
	}
	counted := newCount()
	judged := 0
	for op := range taken.Operations() {
		const often = 1024
		if judged++; judged%often == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		record := op.Record
		record.At = op.At
		was, err := before.Judge(ctx, record)
		if err != nil {
			return nil, fmt.Errorf("preview: %w", err)
		}
		would, err := after.Judge(ctx, record)
		if err != nil {
			return nil, fmt.Errorf("preview: %w", err)
		}
		counted.add(&op, &was, &would)
	}
	return counted.report(taken, &cfg), nil
}

// replay returns a replay under a policy with the overrides.
func replay(ctx context.Context, policy *tiers.Snapshot, cfg *Config, taken *sample.Sample, enforced bool) (*simulate.Replay, error) {
	r, err := simulate.NewReplay(policy, simulate.ReplayConfig{Enforced: enforced, Record: cfg.Record, Value: taken.Value})
	if err != nil {
		return nil, fmt.Errorf("preview: %w", err)
	}
	for i := range cfg.Overrides {
		if err := r.SetOverride(ctx, cfg.Overrides[i].Tenant, cfg.Overrides[i].Override); err != nil {
			return nil, fmt.Errorf("preview: the override of a tenant: %w", err)
		}
	}
	return r, nil
}

// count counts what both policies make of the operations.
type count struct {
	total   previewreport.Row
	tenants map[string]*counts
	// users are those who were seen, and whether one of their operations is newly refused.
	users map[[2]string]bool
	mixed int64
	units map[bucket.Unit]bool
}

type counts struct {
	previewreport.Row
	by map[previewreport.Cause]int64
}

func newCount() *count {
	return &count{tenants: make(map[string]*counts), users: make(map[[2]string]bool), units: make(map[bucket.Unit]bool)}
}

func (c *count) add(op *sample.Operation, was, would *simulate.Judgment) {
	record := op.Record
	t := c.tenants[record.Tenant]
	if t == nil {
		t = &counts{Row: previewreport.Row{Tenant: record.Tenant}, by: make(map[previewreport.Cause]int64)}
		c.tenants[record.Tenant] = t
	}
	t.Tier = would.Tier
	newly := would.Refused && !was.Refused
	for _, row := range [...]*previewreport.Row{&t.Row, &c.total} {
		row.Operations++
		row.Live += number(op.Refused)
		row.Before += number(was.Refused)
		row.After += number(would.Refused)
		row.NewlyRefused += number(newly)
	}
	c.mixed += number(op.Mixed)
	for unit := range record.Units {
		c.units[unit] = true
	}
	if record.User != "" {
		user := [2]string{record.Tenant, record.User}
		c.users[user] = c.users[user] || newly
	}
	if !newly {
		return
	}
	for _, cause := range causes(would) {
		t.by[cause]++
	}
}

func number(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// causes are what refuses an operation.
func causes(j *simulate.Judgment) []previewreport.Cause {
	switch {
	case j.Blocked:
		return []previewreport.Cause{{Limit: "blocked"}}
	case j.TooExpensive:
		return []previewreport.Cause{{Limit: "maxCost"}}
	}
	var all []previewreport.Cause
	for i := range j.Limits {
		state := &j.Limits[i]
		if !state.Exceeded || state.Limit.Soft || state.Limit.Mode != bucket.Enforce {
			continue
		}
		cause := previewreport.Cause{Level: state.Owner.Level.String(), Limit: state.Limit.Name}
		if state.Owner.Level == bucket.Operation {
			cause.Owner = state.Owner.Name
		}
		all = append(all, cause)
	}
	if all == nil {
		// A record of an override blocks it, which is no limit.
		return []previewreport.Cause{{Limit: "blocked"}}
	}
	return all
}
