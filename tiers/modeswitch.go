package tiers

import (
	"context"
	"sync/atomic"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// ModeSwitch is a [Source] that eases the modes of another one while its operator says so: for an
// emergency, in which no limit may refuse any more, at once and without a new document. It is made by
// [NewModeSwitch] and safe for concurrent use. [ModeSwitch.AtMost] says what is refused all the same.
type ModeSwitch struct {
	source    Source
	strictest atomic.Uint32
}

var (
	_ CandidateSource = (*ModeSwitch)(nil)
	_ Checker         = (*ModeSwitch)(nil)
	_ Preparer        = (*ModeSwitch)(nil)
)

// NewModeSwitch returns a switch that changes nothing yet. The source is required.
func NewModeSwitch(source Source) *ModeSwitch {
	return &ModeSwitch{source: source}
}

// AtMost sets the strictest mode that limits, costs and shapes have from the next decision on. With
// [bucket.Shadow] none of them refuses, and they go on counting; with [bucket.Off] the store is not even asked
// about them; [bucket.Enforce] ends the emergency. It never makes a mode stricter. Override records in the store
// do not make a mode stricter than it says either.
//
// What is about no limit is refused in every mode: callers who are unknown or blocked, idempotency keys that are
// malformed, in use or were used for something else, requests to validate without the right to, and mutations
// under a key while the store is away. In the configuration of the extension KeysIgnored ignores all keys,
// and Idempotency.AdmitUnclaimed lets such mutations run. A tenant with too many calls under way is refused unless the mode
// is off.
func (m *ModeSwitch) AtMost(mode bucket.Mode) {
	m.strictest.Store(uint32(min(mode, bucket.Off)))
}

// Mode returns the strictest mode that anything can have.
func (m *ModeSwitch) Mode() bucket.Mode {
	return bucket.Mode(m.strictest.Load())
}

// Snapshot returns the current policy of the source with no mode stricter than that of the switch.
func (m *ModeSwitch) Snapshot() *Snapshot {
	s := m.source.Snapshot()
	if s == nil {
		return nil
	}
	return s.AtMost(m.Mode())
}

// Check implements [Checker]: the source does the checking.
func (m *ModeSwitch) Check(check func(*Snapshot) error) error {
	return forward(m.source, check)
}

// Candidate returns the candidate of the source, if it is a [CandidateSource] that has one. Its modes are
// its own: it decides nothing.
func (m *ModeSwitch) Candidate() (id string, candidate *Snapshot) {
	if source, ok := m.source.(CandidateSource); ok {
		return source.Candidate()
	}
	return "", nil
}

// Prepare implements [Preparer]: the source knows the tenants.
func (m *ModeSwitch) Prepare(ctx context.Context, subject Subject) *Record {
	return prepare(ctx, m.source, subject)
}
