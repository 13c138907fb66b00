package event

import (
	"log/slog"
	"strconv"
	"time"
)

// ModeSwitch is a mode that nothing of a scope is stricter than, for a time: an operator has eased it in an emergency.
type ModeSwitch struct {
	// Tenant and Operation are the scope: all tenants where Tenant is empty, and all operations where Operation is. An operation is
	// spelled as in an operation rule.
	Tenant    string `json:"tenant,omitempty"`
	Operation string `json:"operation,omitempty"`
	// AtMost is the strictest mode: warn, shadow or off.
	AtMost string `json:"atMost"`
	// Until is when it ends by itself, and Since when it was set.
	Until time.Time `json:"until"`
	Since time.Time `json:"since,omitzero"`
	// Reason is why, and By who has set it, as they have said.
	Reason string `json:"reason"`
	By     string `json:"by"`
}

// ModeSwitched says which mode switches a replica applies from now on: another one was set, one has ended, by hand or by itself,
// what stands there could not be read, or the replica has lost touch with where they come from, or found it again.
type ModeSwitched struct {
	// At is when, by the clock of the replica.
	At time.Time `json:"at"`
	// State is current, stale or never, as of a policy.
	State string `json:"state"`
	// InForce are those that are applied.
	InForce []ModeSwitch `json:"inForce,omitempty"`
	// Refused is 1 where what stands there are no switches, and those before stay. Error is why, or why nothing could be read.
	Refused int    `json:"refused,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Name returns mode_switched.
func (ModeSwitched) Name() string { return "mode_switched" }

// LogValue returns all fields but the time. What is empty is left out.
func (e ModeSwitched) LogValue() slog.Value {
	var a attributes
	a.text("state", e.State)
	a = append(a, slog.Int("count", len(e.InForce)))
	var switches attributes
	for i := range e.InForce {
		s := &e.InForce[i]
		var one attributes
		one.text("tenant", s.Tenant)
		one.text("operation", s.Operation)
		one.text("atMost", s.AtMost)
		one.time("until", s.Until)
		one.time("since", s.Since)
		one.text("reason", s.Reason)
		one.text("by", s.By)
		switches.group(strconv.Itoa(i), one)
	}
	a.group("inForce", switches)
	a.number("refused", int64(e.Refused))
	a.text("error", e.Error)
	return slog.GroupValue(a...)
}
