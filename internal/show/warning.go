package show

import (
	"strconv"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// warning returns what clients are told of something that would have refused, nil if it is in shadow.
func warning(d *decision.Decision, r *decision.Refusal) *ratelimitclient.Warning {
	if r.Mode != bucket.Warn {
		return nil
	}
	w := &ratelimitclient.Warning{Code: r.Outcome.Code(), Message: Message(d, r)}
	w.Cost, w.MaxCost = costs(r, d.Hide)
	if r.Limit != nil {
		w.Limit, w.Level, w.Owner, w.Unit = r.Limit.Name, r.Owner.Level.String(), owner(d, r.Owner), string(r.Limit.Unit)
	}
	if !r.EnforceFrom.IsZero() {
		w.EnforcedFrom = r.EnforceFrom.UTC().Format(time.DateOnly)
	}
	return w
}

// appendWarning appends the value of RateLimit-Warning, such as
// RATE_LIMITED;limit="minute";enforced-from=@1796083200: the code that the operation would have been
// refused with, the limit as RateLimit names it, and the moment in which enforcement
// begins, a date of RFC 9651, section 3.3.7.
func appendWarning(b []byte, d *decision.Decision, r *decision.Refusal) []byte {
	b = append(b, r.Outcome.Code()...)
	if r.Limit != nil {
		b = append(b, ";limit="...)
		b = appendLimitName(b, r.Owner.Level, owner(d, r.Owner), r.Limit.Name)
	}
	if !r.EnforceFrom.IsZero() {
		b = append(b, ";enforced-from=@"...)
		b = strconv.AppendInt(b, r.EnforceFrom.Unix(), 10)
	}
	return b
}
