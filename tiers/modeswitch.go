package tiers

import (
	"sync/atomic"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// ModeSwitch is a [Source] that eases the modes of another one while its operator says so: for an
// emergency, in which the limiter must let everything through at once and without a new document. It is
// made by [NewModeSwitch] and safe for concurrent use.
type ModeSwitch struct {
	source    Source
	strictest atomic.Uint32
}

var (
	_ CandidateSource = (*ModeSwitch)(nil)
	_ Checker         = (*ModeSwitch)(nil)
)

// NewModeSwitch returns a switch that changes nothing yet. The source is required.
func NewModeSwitch(source Source) *ModeSwitch {
	return &ModeSwitch{source: source}
}

// AtMost sets the strictest mode that anything has from the next decision on. [bucket.Shadow] refuses
// nothing and goes on counting, [bucket.Off] does not even ask the store, [bucket.Enforce] ends the
// emergency. It never makes a mode stricter, and lets nobody in who is blocked. Override records in the
// store do not make a mode stricter than it says either.
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
