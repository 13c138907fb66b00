package show

import (
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
)

// seen returns the decision as its client may know it: as if the policy had nothing in mode shadow or off. It returns the
// decision itself where that is so, or where clients are told of trials.
func seen(d *decision.Decision) *decision.Decision {
	wouldShadow := d.WouldRefuse != nil && onTrial(d.WouldRefuse.Mode)
	tried := func(l bucket.LimitState) bool { return onTrial(l.Limit.Mode) }
	if d.ShowShadow || d.Subject.Exempt || !wouldShadow && !onTrial(d.Mode) && !slices.ContainsFunc(d.Limits, tried) {
		return d
	}
	open := *d
	open.Limits = slices.DeleteFunc(slices.Clone(d.Limits), tried)
	if wouldShadow {
		open.WouldRefuse = nil
	}
	if onTrial(d.Mode) {
		open.Mode = openMode(d)
	}
	open.Charged = d.Openly
	if d.Openly == 0 {
		open.Refunded, open.Correctable = 0, false
		if !d.Counted {
			// Without the trial nobody would have added it up.
			open.Actual = nil
		}
	}
	if d.Rules != nil && (d.Hide.Owners || slices.ContainsFunc(d.Rules.Buckets, func(b bucket.Bucket) bool { return b.Owner.Part != "" })) {
		// Rules whose names are hidden, and parts of rules, are numbered, and a number left out would tell of a trial.
		rules := *d.Rules
		rules.Buckets = slices.DeleteFunc(slices.Clone(rules.Buckets), func(b bucket.Bucket) bool {
			judged := slices.ContainsFunc(open.Limits, func(l bucket.LimitState) bool { return l.Owner == b.Owner })
			return !judged && b.Limits.Mode() > bucket.Warn
		})
		open.Rules = &rules
	}
	return &open
}

// silent says that the client is told nothing: it is exempt, or whatever the policy has for it is in shadow or off.
func silent(d *decision.Decision) bool {
	switch {
	case d.Subject.Exempt:
		return d.Outcome == decision.Exempt
	case d.ShowShadow || !onTrial(openMode(d)):
		return false
	case onTrial(d.Mode):
		return true
	default:
		// Who has no limits at all is told so. A tier whose limits are all in shadow has some.
		return d.Rules != nil && (d.Rules.MaxCost.Shadow > 0 || !d.Rules.Unlimited && len(d.Rules.Buckets) > 0)
	}
}

// onTrial says that a mode neither refuses nor warns.
func onTrial(mode bucket.Mode) bool { return mode > bucket.Warn }

// openMode is the strictest mode of the limits and maximum costs that the client has, off if none refuses or warns. A
// limit that an override record has changed is in the mode of the record.
func openMode(d *decision.Decision) bucket.Mode {
	mode := bucket.Off
	for i := range d.Limits {
		mode = min(mode, d.Limits[i].Limit.Mode)
	}
	if d.Rules != nil {
		if d.Rules.MaxCost.Enforce > 0 {
			mode = bucket.Enforce
		} else if d.Rules.MaxCost.Warn > 0 {
			mode = min(mode, bucket.Warn)
		}
		for i := range d.Rules.Buckets {
			if !d.Rules.Unlimited {
				mode = min(mode, d.Rules.Buckets[i].Limits.Mode())
			}
		}
	}
	if onTrial(mode) {
		return bucket.Off
	}
	return mode
}
