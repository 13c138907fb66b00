package tiers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// ModeSwitch is a [Source] that eases the modes of another one while its operator says so: for an
// emergency, in which no limit may refuse any more, at once and without a new document. It is made by
// [NewModeSwitch] and safe for concurrent use. [ModeSwitch.AtMost] says what is refused all the same, and is for the process to use;
// [ModeSwitch.Ease] is about tenants and operations, and ends by itself: package policy/redisswitch brings those to every instance.
type ModeSwitch struct {
	source    Source
	strictest atomic.Uint32
	// by are nil if there are none.
	by atomic.Pointer[easings]
	// view is the last one that was made.
	view atomic.Pointer[Snapshot]
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

// Ease puts easings in force from the next decision on, in the place of those before, each until its time: nobody has to take
// them back. Where several are about one decision the easiest holds; none makes a mode stricter, nor does [ModeSwitch.AtMost]. The slice may be
// changed afterwards. The error says everything that is wrong with them; then those before stay.
func (m *ModeSwitch) Ease(all []Easing) error {
	if len(all) > MaxEasings {
		return fmt.Errorf("tiers: %d easings; at most %d fit", len(all), MaxEasings)
	}
	var errs []error
	for i := range all {
		errs = append(errs, all[i].Check())
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	m.by.Store(newEasings(all, time.Now()))
	return nil
}

// MaxEasings is how many easings are in force at once at most.
const MaxEasings = 64

// Easings returns those that are in force. The slice is the caller's own.
func (m *ModeSwitch) Easings() []Easing {
	if by := m.inForce(); by != nil {
		return slices.Clone(by.all)
	}
	return nil
}

// inForce returns the easings that have not ended, nil if there are none. As long as none was set it reads no clock.
func (m *ModeSwitch) inForce() *easings {
	for {
		by := m.by.Load()
		if by == nil {
			return nil
		}
		now := time.Now()
		if now.Before(by.next) {
			return by
		}
		m.by.CompareAndSwap(by, newEasings(by.all, now))
	}
}

// Snapshot returns the current policy of the source with no mode stricter than that of the switch, and of easings where they apply.
func (m *ModeSwitch) Snapshot() *Snapshot {
	s := m.source.Snapshot()
	if s == nil {
		return nil
	}
	by := m.inForce()
	if by == nil {
		if m.view.Load() != nil {
			// It would keep an old policy in memory.
			m.view.Store(nil)
		}
		return s.AtMost(m.Mode())
	}
	base := s.AtMost(max(m.Mode(), by.everywhere))
	if by.simple() {
		return base
	}
	view := m.view.Load()
	if view == nil || view.eased.base != base || view.eased.by != by {
		// The same view serves until something changes, for those who remember what they have made of it.
		view = base.easedBy(by)
		m.view.Store(view)
	}
	return view
}

// Check implements [Checker]: the source does the checking.
func (m *ModeSwitch) Check(check func(*Snapshot) error) error {
	return forward(m.source, check)
}

// Candidate returns the candidate of the source, if it is a [CandidateSource] that has one. Its modes are its own: it decides nothing.
func (m *ModeSwitch) Candidate() (id string, candidate *Snapshot) {
	return CandidateOf(m.source)
}

// Prepare implements [Preparer]: the source knows the tenants.
func (m *ModeSwitch) Prepare(ctx context.Context, subject Subject) *Record {
	return prepare(ctx, m.source, subject)
}
