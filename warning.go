package ratelimit

import (
	"strconv"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// warning returns what clients are told of something that would have refused, nil if it is in shadow.
func (e *RefusedError) warning() *ratelimitclient.Warning {
	if e.Mode != bucket.Warn {
		return nil
	}
	w := &ratelimitclient.Warning{Code: e.Code, Message: e.Message}
	w.Cost, w.MaxCost = e.costs()
	if e.Limit != nil {
		w.Limit, w.Level, w.Owner, w.Unit = e.Limit.Name, e.Owner.Level.String(), e.telling.owner, string(e.Limit.Unit)
	}
	if !e.EnforceFrom.IsZero() {
		w.EnforcedFrom = e.EnforceFrom.UTC().Format(time.DateOnly)
	}
	return w
}

// appendWarning appends the value of RateLimit-Warning, such as
// RATE_LIMITED;limit="minute";enforced-from=@1796083200: the code that the operation would have been
// refused with, the limit as RateLimit names it, and the moment in which enforcement
// begins, a date of RFC 9651, section 3.3.7.
func appendWarning(b []byte, e *RefusedError) []byte {
	b = append(b, e.Code...)
	if e.Limit != nil {
		b = append(b, ";limit="...)
		b = appendLimitName(b, e.Owner.Level, e.telling.owner, e.Limit.Name)
	}
	if !e.EnforceFrom.IsZero() {
		b = append(b, ";enforced-from=@"...)
		b = strconv.AppendInt(b, e.EnforceFrom.Unix(), 10)
	}
	return b
}
