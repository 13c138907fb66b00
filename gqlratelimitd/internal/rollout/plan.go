package rollout

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Bounds of a plan.
const (
	maxSteps = 32
	maxStep  = 90 * 24 * time.Hour
	minStep  = 5 * time.Minute

	percentOfAll = 100
)

const week = 7 * 24 * time.Hour

// Step is for which tenants the new policy holds, and for how long before the next step.
type Step struct {
	// Percent is for how many percent of tenants the policy holds, drawn by a hash: 0 to 99, or 100 if Warn is set. With 0 it is a candidate:
	// judged, and refusing nobody.
	Percent int `json:"percent"`
	// Warn has the policy hold in mode warn at most. It needs a policy before that enforces nothing: those limits do not hold beside it.
	Warn bool `json:"warn,omitempty"`
	// For is how long the step lasts: five minutes to 90 days.
	For time.Duration `json:"for"`
}

// Plan is the steps one after the other. After the last one the policy holds for all tenants. The zero value is a mistake.
type Plan []Step

// ShadowThenWarn is a week in which the policy is a candidate, and a week of warnings. It is for a policy after one that enforces nothing.
func ShadowThenWarn() Plan { return Plan{{For: week}, {Percent: percentOfAll, Warn: true, For: week}} }

// Gradual is a week in which the policy is a candidate, and then growing shares of tenants over a second week.
func Gradual() Plan {
	const day = 24 * time.Hour
	return Plan{{For: week}, {Percent: 1, For: day}, {Percent: 5, For: 2 * day}, {Percent: 25, For: 2 * day}, {Percent: 50, For: 2 * day}}
}

// ParsePlan reads a plan: gradual, shadow-then-warn, or steps of one's own with a percentage or warn, and a duration each, such as
// 0:168h,5:24h,50:24h. What it says is checked when a roll-out begins.
func ParsePlan(text string) (Plan, error) {
	switch text {
	case "gradual":
		return Gradual(), nil
	case "shadow-then-warn":
		return ShadowThenWarn(), nil
	}
	parts := strings.Split(text, ",")
	if len(parts) > maxSteps {
		return nil, fmt.Errorf("rollout: a plan of %d steps, want 1 to %d", len(parts), maxSteps)
	}
	plan := make(Plan, len(parts))
	for i, part := range parts {
		share, length, _ := strings.Cut(strings.TrimSpace(part), ":")
		step := Step{Percent: percentOfAll, Warn: true}
		err := error(nil)
		if share != "warn" {
			step.Warn = false
			step.Percent, err = strconv.Atoi(share)
		}
		if err == nil {
			step.For, err = time.ParseDuration(length)
		}
		if err != nil {
			return nil, fmt.Errorf("rollout: a plan is gradual, shadow-then-warn, or steps such as 0:168h,5:24h,warn:168h; step %d is %.40q", i+1, part)
		}
		plan[i] = step
	}
	return plan, nil
}

// check returns everything that is wrong with the plan.
func (p Plan) check(now *tiers.Policy) error {
	var errs []error
	if len(p) == 0 || len(p) > maxSteps {
		errs = append(errs, fmt.Errorf("rollout: a plan of %d steps, want 1 to %d", len(p), maxSteps))
	}
	percent := 0
	for i, step := range p {
		most := percentOfAll - 1
		if step.Warn {
			most = percentOfAll
		}
		if step.Percent < percent || step.Percent > most {
			errs = append(errs, fmt.Errorf("rollout: step %d is of %d percent, want %d to %d: a share only grows, and all tenants come after the last step", i+1, step.Percent, percent, most))
		}
		percent = max(percent, step.Percent)
		if step.For < minStep || step.For > maxStep {
			errs = append(errs, fmt.Errorf("rollout: step %d lasts %s, want %s to %s", i+1, step.For, minStep, maxStep))
		}
		if step.Warn && !enforcesNothing(now) {
			errs = append(errs, fmt.Errorf("rollout: step %d warns only, and the policy of now enforces limits, which would not hold: use shares of tenants", i+1))
		}
	}
	return errors.Join(errs...)
}

// enforcesNothing says whether no part of a policy is in mode enforce, today or later.
func enforcesNothing(p *tiers.Policy) bool {
	if p.Mode == "" || p.Mode == "enforce" {
		return false
	}
	text, err := json.Marshal(p)
	return err == nil && !strings.Contains(string(text), `"mode":"enforce"`) && !strings.Contains(string(text), `"enforceFrom":`)
}
