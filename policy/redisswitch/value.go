package redisswitch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Bounds of switches.
const (
	// Longest is for how long a switch holds at most. What is to hold for longer belongs into the policy.
	Longest = 7 * 24 * time.Hour
	// MaxText is how many bytes a reason, or a name of who has set a switch, has at most.
	MaxText = 512
	// maxValue is how many bytes all switches have in the Redis.
	maxValue = 256 << 10
	// maxRevision is the largest one: a larger number is not the same in every reader of JSON.
	maxRevision = 1 << 53
)

// Errors of switches.
var (
	// ErrUntil says that a switch has ended already, or holds for longer than [Longest], by the clock of the Redis.
	ErrUntil = errors.New("redisswitch: a switch has to end in the future, and within a week")
	// ErrTooMany says that tiers.MaxEasings switches are in force, or that their texts are too long together.
	ErrTooMany = fmt.Errorf("redisswitch: %d switches are in force, or fewer with long names: end some", tiers.MaxEasings)
	// ErrUnreadable says that what stands there are no switches. What is known holds on, and a switch that is set takes their place.
	ErrUnreadable = errors.New("redisswitch: what stands there are no mode switches")
)

// Switch is a mode switch that is in force.
type Switch struct {
	event.ModeSwitch
	// Revision is the write that has set it. A later one has a larger number.
	Revision uint64 `json:"revision"`
}

// value is what the key holds.
type value struct {
	// Revision is the last write.
	Revision uint64   `json:"revision"`
	Switches []Switch `json:"switches"`
}

// known is a switch with its end by the clock of this process, which another clock that is wrong does not change.
type known struct {
	Switch
	easing tiers.Easing
}

// easings returns what some switches say.
func easings(of []known) []tiers.Easing {
	all := make([]tiers.Easing, 0, len(of))
	for i := range of {
		all = append(all, of[i].easing)
	}
	return all
}

// Fingerprint tells a switch from every other one that was ever set.
func (s *Switch) Fingerprint() string {
	// It has no value that JSON has not.
	text, _ := json.Marshal(s)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// decode reads what anybody may have written. now is the time of the Redis, which was asked at a time of this process. Those that have
// ended are left out.
func decode(text string, now, asked time.Time) (v value, in []known, _ error) {
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return value{}, nil, fmt.Errorf("%w: they are no JSON", ErrUnreadable)
	}
	if v.Revision > maxRevision || len(v.Switches) > tiers.MaxEasings {
		return value{}, nil, fmt.Errorf("%w: revision %d, and %d of them", ErrUnreadable, v.Revision, len(v.Switches))
	}
	scopes := make(map[[2]string]bool, len(v.Switches))
	var left []Switch
	for i := range v.Switches {
		s := &v.Switches[i]
		rest := s.Until.Sub(now)
		easing, err := easingOf(&s.ModeSwitch, asked.Add(rest))
		at := [2]string{s.Tenant, s.Operation}
		// One that holds for longer than it may has not been set by Put.
		if err != nil || s.Until.IsZero() || rest > Longest || s.Revision > v.Revision || scopes[at] {
			return value{}, nil, fmt.Errorf("%w: one does not fit", ErrUnreadable)
		}
		scopes[at] = true
		if rest > 0 {
			left, in = append(left, *s), append(in, known{*s, easing})
		}
	}
	v.Switches = left
	return v, in, nil
}

// easingOf returns what a switch says until a time, and what is wrong with it.
func easingOf(m *event.ModeSwitch, until time.Time) (tiers.Easing, error) {
	e := tiers.Easing{Tenant: m.Tenant, Operation: m.Operation, Until: until}
	for _, mode := range [...]bucket.Mode{bucket.Warn, bucket.Shadow, bucket.Off} {
		if m.AtMost == mode.String() {
			e.AtMost = mode
		}
	}
	errs := []error{e.Check()}
	for _, text := range [...]struct{ what, text string }{{"reason", m.Reason}, {"name of who has set it", m.By}} {
		if strings.TrimSpace(text.text) == "" || len(text.text) > MaxText || !utf8.ValidString(text.text) {
			errs = append(errs, fmt.Errorf("redisswitch: a switch needs a %s of 1 to %d bytes of UTF-8", text.what, MaxText))
		}
	}
	if year := m.Until.Year(); !m.Until.IsZero() && (year < 1970 || year > 9999) {
		errs = append(errs, ErrUntil)
	}
	return e, errors.Join(errs...)
}
