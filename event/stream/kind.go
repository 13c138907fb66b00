package stream

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gqlgen-ratelimit/ratelimit/event"
)

// topic is one of those that events go to.
type topic uint8

const (
	denials topic = iota
	thresholds
	policyUpdates
	topics
)

// kind is what is known of an event without looking at the rest of it.
type kind struct {
	// name is the type of the envelope.
	name  string
	topic topic
	// tenant is whose it is, as it stands in the event.
	tenant string
	at     time.Time
	// id is one that the event has of its own, empty if none.
	id string
	// size is about how many bytes it takes while it waits.
	size int
}

// Sizes of what waits beside its texts, rounded up: of any event, and of one limit, override record or root field of a decision.
const (
	eventSize    = 512
	decidedSize  = 1024
	limitSize    = 384
	overrideSize = 192
	fieldSize    = 64
	switchSize   = 256
)

// kindOf returns what is known of an event. It is false for one that goes to no topic. It allocates nothing.
func kindOf(e event.Event) (k kind, ok bool) {
	switch e := e.(type) {
	case event.Decided:
		k = ofDecided(&e)
		return k, k.name != ""
	case event.WouldRefuse:
		k = kind{"ratelimit.limit.would_refuse.v1", denials, e.Tenant, e.At, "", budgetSize(&e.Budget)}
	case event.RefusedRepeatedly:
		k = kind{"ratelimit.tenant.refused_repeatedly.v1", denials, e.Tenant, e.At, "", eventSize + len(e.Tenant)}
	case event.CandidateDiffers:
		k = kind{"ratelimit.candidate.differs.v1", denials, e.Tenant, e.At, "", eventSize + len(e.Tenant)}
	case event.RefusedAtDoor:
		k = kind{"ratelimit.door.refused.v1", denials, "", e.At, "", eventSize + len(e.Message)}
	case event.ThresholdCrossed:
		k = kind{"ratelimit.threshold.crossed.v1", thresholds, e.Tenant, e.At, "", budgetSize(&e.Budget)}
	case event.LimitReached:
		k = kind{"ratelimit.limit.reached.v1", thresholds, e.Tenant, e.At, "", budgetSize(&e.Budget)}
	case event.PolicyApplied:
		k = kind{"ratelimit.policy.applied.v1", policyUpdates, "", e.At, "", eventSize + len(e.Author) + len(e.Reason)}
	case event.PolicyRefused:
		k = kind{"ratelimit.policy.refused.v1", policyUpdates, "", e.At, "", eventSize + len(e.Error)}
	case event.PolicyState:
		k = kind{"ratelimit.policy.state.v1", policyUpdates, "", e.At, "", eventSize + len(e.Error) + len(e.Unsaved)}
	case event.ModeSwitched:
		k = kind{"ratelimit.mode.switched.v1", policyUpdates, "", e.At, "", eventSize + len(e.Error)}
		for i := range e.InForce {
			k.size += switchSize + len(e.InForce[i].Tenant) + len(e.InForce[i].Reason) + len(e.InForce[i].By)
		}
	default:
		return kind{}, false
	}
	return k, true
}

func budgetSize(b *event.Budget) int {
	return eventSize + len(b.Tenant) + len(b.Owner) + len(b.Part)
}

// ofDecided returns a kind without a name for what was neither refused nor would have been.
func ofDecided(e *event.Decided) kind {
	k := kind{"ratelimit.decision.refused.v1", denials, e.Tenant, e.At, e.RefusalID, decidedSize}
	switch {
	case e.RefusalID != "":
	case e.Code != "":
		k.name = "ratelimit.decision.would_refuse.v1"
	default:
		return kind{}
	}
	k.size += len(e.Tenant) + len(e.Team) + len(e.User) + len(e.SubjectTier) + len(e.Operation) + fieldSize*(len(e.RootFields)+len(e.Amounts))
	k.size += originSize(&e.Origin)
	for i := range e.Limits {
		l := &e.Limits[i]
		k.size += limitSize + len(l.Owner) + len(l.Part)
		if l.Origin != nil {
			k.size += originSize(l.Origin)
		}
	}
	return k
}

func originSize(o *event.Origin) int {
	size := fieldSize * len(o.Rule)
	for i := range o.Overrides {
		r := &o.Overrides[i]
		size += overrideSize + len(r.Owner) + len(r.Part) + len(r.Reason) + len(r.Actor)
	}
	return size
}

// Subject returns the name of a tenant as envelopes have it: what nobody would see stands in it as Go escapes it. Two names stay two.
func Subject(tenant string) string {
	visible := utf8.ValidString(tenant) && !strings.ContainsFunc(tenant, func(r rune) bool { return unicode.IsControl(r) || r == '\\' })
	if visible {
		return tenant
	}
	quoted := strconv.Quote(tenant)
	return quoted[1 : len(quoted)-1]
}
