package ratelimit

import (
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// members returns the owners that the operation belongs to, whether or not they have budgets: an override
// record may block any of them. The room is used if it is large enough.
func (op *operation) members(room []bucket.Owner) []bucket.Owner {
	d := &op.decision
	members := append(room[:0], bucket.Owner{})
	if d.Subject.Team != "" {
		members = append(members, bucket.Owner{Level: bucket.Team, Name: d.Subject.Team})
	}
	if d.Subject.User != "" {
		members = append(members, bucket.Owner{Level: bucket.User, Name: d.Subject.User})
	}
	for _, field := range d.RootFields {
		members = append(members, bucket.Owner{Level: bucket.Operation, Name: field})
	}
	return members
}

// overridden says whether an override record was in force.
func overridden(result *bucket.Result) bool {
	for i := range result.Limits {
		if result.Limits[i].Overridden {
			return true
		}
	}
	return result.Verdict == bucket.Blocked
}
