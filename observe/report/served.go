package report

import (
	"encoding/json"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event"
)

// Policy is a revision and its author.
type Policy struct {
	Revision uint64 `json:"revision"`
	Hash     string `json:"hash,omitempty"`
	// Author published it for a Reason, as the revision says.
	Author    string    `json:"author,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Published time.Time `json:"published,omitzero"`
	// Applied is since when the instance serves it. Origin is where it came from: feed, last_good or first.
	Applied time.Time `json:"applied,omitzero"`
	Origin  string    `json:"origin,omitempty"`
}

// Feed is what an instance knows of the feed of its policy. Texts are cut to 1 KiB; those that do not fit into an [Activity] are left out.
type Feed struct {
	// State says whether the instance is in touch with the feed: current, stale or never, which is that the feed has not answered since the
	// start.
	State string `json:"state"`
	// Asked is when the feed last said that it is in step with an instance that is stale. Else it is zero.
	Asked time.Time `json:"asked,omitzero"`
	// Refused is the newest revision of the feed if the instance refuses it, else nil.
	Refused *Refused `json:"refused,omitempty"`
	// Failure is why the feed could not be read when the state changed last. Unsaved is why the policy could not be written to the disk last.
	// They are empty if they could.
	Failure string `json:"failure,omitempty"`
	Unsaved string `json:"unsaved,omitempty"`
}

// Refused is a revision that an instance does not apply, and why.
type Refused struct {
	Revision uint64 `json:"revision"`
	Hash     string `json:"hash,omitempty"`
	// Cause is why, in a word, and Error in a sentence.
	Cause string `json:"cause"`
	Error string `json:"error,omitempty"`
	// At is since when, by the clock of the instance.
	At time.Time `json:"at"`
}

// Modes are mode switches.
type Modes struct {
	// State says whether the instance is in touch with their source: current, stale or never.
	State string `json:"state"`
	// InForce are the switches that are applied.
	InForce []event.ModeSwitch `json:"inForce,omitempty"`
}

// shortenServed leaves out texts until what the instance serves fits: those of errors first, then reasons and authors, then mode switches. It
// changes nothing that others have.
func (a *Activity) shortenServed() {
	fits := func() bool {
		// These have no value that JSON has not.
		text, _ := json.Marshal([]any{a.Policy, a.Feed, a.Modes})
		return len(text) <= maxServed
	}
	if !fits() && a.Feed != nil {
		feed := *a.Feed
		feed.Failure, feed.Unsaved = "", ""
		if feed.Refused != nil {
			refused := *feed.Refused
			refused.Error = "too long to be reported: see the log of the instance"
			feed.Refused = &refused
		}
		a.Feed = &feed
	}
	if !fits() && a.Policy != nil {
		policy := *a.Policy
		policy.Author, policy.Reason = "", ""
		a.Policy = &policy
	}
	for !fits() && a.Modes != nil && len(a.Modes.InForce) > 0 {
		a.Modes = &Modes{State: a.Modes.State, InForce: a.Modes.InForce[:len(a.Modes.InForce)/2]}
	}
}
