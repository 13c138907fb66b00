package policy

import (
	"fmt"
	"strings"
)

// Reason says in a word why a revision is refused. Metrics carry it.
type Reason string

// Why a revision is refused.
const (
	// ReasonMalformed is a revision whose number, size or texts do not fit.
	ReasonMalformed Reason = "malformed"
	// ReasonHash is a document that is not the one that was published: half of it, or another one.
	ReasonHash Reason = "hash"
	// ReasonOlder is a revision that is older than the one that holds.
	ReasonOlder Reason = "older"
	// ReasonConflict is a document that differs from the one that holds under the same number.
	ReasonConflict Reason = "conflict"
	// ReasonSignature is a revision that no key of [Config.Keys] has signed.
	ReasonSignature Reason = "signature"
	// ReasonDocument is a document with mistakes, a *tiers.PolicyError.
	ReasonDocument Reason = "document"
	// ReasonCheck is a policy that does not pass a check of those who use it, as one that names stores which are not
	// configured.
	ReasonCheck Reason = "check"
)

// RefusedError says why a revision is not applied. It unwraps to the cause.
type RefusedError struct {
	// Revision is what was refused. Its hash is the one that it claims.
	Revision Head
	// Reason is why, in a word.
	Reason Reason
	// Err is why, in a sentence.
	Err error
}

func (r *Revision) refuse(reason Reason, err error) error {
	return &RefusedError{Revision: r.Head(), Reason: reason, Err: err}
}

// Error names the number, and says why.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("policy: revision %d is refused: %v", e.Revision.Number, e.Err)
}

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Err }

// Bounds of the text of an error: what is told to an observer, where a policy with many mistakes has a long one, and what
// leaves the process in a report.
const (
	maxToldText   = 8 << 10
	maxReportText = 1 << 10
)

// errorText is the text of an error, cut to a number of bytes.
func errorText(err error, most int) string {
	text := strings.ToValidUTF8(err.Error(), "?")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
