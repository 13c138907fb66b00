package event

import (
	"log/slog"
	"time"
)

// PolicyApplied says that a policy holds from now on: another one than before, or the same one again after the feed had
// one that was refused.
type PolicyApplied struct {
	// At is when, by the clock of the replica.
	At time.Time `json:"at"`
	// Policy is the name of the follower, empty where there is one.
	Policy string `json:"policy,omitempty"`
	// Revision is the number, 0 for a policy that is of no feed, and Hash the hash of the document.
	Revision uint64 `json:"revision"`
	Hash     string `json:"hash,omitempty"`
	// Author is who has published it, and Reason why, as the revision says.
	Author string `json:"author,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Published is when, by the clock of the author. It is zero if nobody knows.
	Published time.Time `json:"published,omitzero"`
	// Origin is where it comes from: feed, last_good or first.
	Origin string `json:"origin"`
	// Again says that this policy has held all along: a revision that was refused is gone.
	Again bool `json:"again,omitempty"`
}

// Name returns policy_applied.
func (PolicyApplied) Name() string { return "policy_applied" }

// LogValue returns all fields but At, and those that are empty left out.
func (e PolicyApplied) LogValue() slog.Value {
	var a attributes
	a.text("policy", e.Policy)
	a = append(a, slog.Uint64("revision", e.Revision))
	a.text("hash", e.Hash)
	a.text("author", e.Author)
	a.text("reason", e.Reason)
	a.time("published", e.Published)
	a.text("origin", e.Origin)
	a.flag("again", e.Again)
	return slog.GroupValue(a...)
}

// PolicyRefused says that a revision is not applied: the policy before it stays.
type PolicyRefused struct {
	// At is when, by the clock of the replica.
	At time.Time `json:"at"`
	// Policy is the name of the follower, empty where there is one.
	Policy string `json:"policy,omitempty"`
	// Revision and Hash are those of what was refused, 0 and empty for what could not be read as a revision.
	Revision uint64 `json:"revision"`
	Hash     string `json:"hash,omitempty"`
	// Cause is why, in a word, as metrics have it, and Error in at most about 8 KiB of text.
	Cause string `json:"cause"`
	Error string `json:"error,omitempty"`
	// Holds is the number of the revision that stays.
	Holds uint64 `json:"holds"`
}

// Name returns policy_refused.
func (PolicyRefused) Name() string { return "policy_refused" }

// LogValue returns all fields but At, and those that are empty left out.
func (e PolicyRefused) LogValue() slog.Value {
	var a attributes
	a.text("policy", e.Policy)
	a = append(a, slog.Uint64("revision", e.Revision))
	a.text("hash", e.Hash)
	a.text("cause", e.Cause)
	a.text("error", e.Error)
	a = append(a, slog.Uint64("holds", e.Holds))
	return slog.GroupValue(a...)
}

// PolicyCurrent is the state of a replica that is in touch with its feed of policies.
const PolicyCurrent = "current"

// PolicyState says that this replica has lost touch with its feed of policies, has found it again, or has started
// without it; or that it can no longer keep the policy on its disk, or can again.
type PolicyState struct {
	// At is when, by the clock of the replica.
	At time.Time `json:"at"`
	// Policy is the name of the follower, empty where there is one.
	Policy string `json:"policy,omitempty"`
	// From is the state before, and To the one since: current, stale or never. From is empty at the
	// start. Both are the same where only Unsaved is another.
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	// Age is for how long the feed has not said that the policy is its newest, or at a return had not.
	Age time.Duration `json:"age,omitempty"`
	// Revision is the number of the revision that holds.
	Revision uint64 `json:"revision"`
	// Error is why the feed could not be read last. It is empty if it could.
	Error string `json:"error,omitempty"`
	// Unsaved is why the policy could not be written to the disk last. It is empty if it could.
	Unsaved string `json:"unsaved,omitempty"`
}

// Name returns policy_state.
func (PolicyState) Name() string { return "policy_state" }

// LogValue returns all fields but At, and those that are empty left out.
func (e PolicyState) LogValue() slog.Value {
	var a attributes
	a.text("policy", e.Policy)
	a.text("from", e.From)
	a.text("to", e.To)
	a.duration("age", e.Age)
	a = append(a, slog.Uint64("revision", e.Revision))
	a.text("error", e.Error)
	a.text("unsaved", e.Unsaved)
	return slog.GroupValue(a...)
}
