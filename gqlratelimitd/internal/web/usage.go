package web

import (
	"net/http"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// gradeBudget says what figures of usage are: what budgets have at one moment, which is no count for a bill.
const gradeBudget = "budget"

// budgetUsage is what the budgets of a tenant have at one moment.
type budgetUsage struct {
	Tenant string `json:"tenant"`
	Grade  string `json:"grade"`
	// Revision is that of the policy.
	Revision  uint64 `json:"revision"`
	Tier      string `json:"tier"`
	TierFrom  string `json:"tierFrom"`
	Mode      string `json:"mode"`
	Blocked   bool   `json:"blocked"`
	Unlimited bool   `json:"unlimited"`
	// Misfit says why the record of the tenant does not hold.
	Misfit  string    `json:"misfit,omitempty"`
	At      time.Time `json:"at"`
	Budgets []budget  `json:"budgets"`
	// Backstop are the budgets over all tenants, for whoever may read the fleet.
	Backstop []budget `json:"backstop,omitempty"`
}

// budget is a limit of an owner, and what is left of it.
type budget struct {
	Level     string      `json:"level"`
	Name      string      `json:"name,omitempty"`
	Part      string      `json:"part,omitempty"`
	Limit     string      `json:"limit"`
	Unit      bucket.Unit `json:"unit"`
	Capacity  int64       `json:"capacity"`
	Used      int64       `json:"used"`
	Remaining int64       `json:"remaining"`
	Overdraft int64       `json:"overdraft,omitempty"`
	// Held is what instances lease, and Holders how many they are. HeldBy are the largest ones, for whoever may read the fleet.
	Held    int64        `json:"held,omitempty"`
	Holders int          `json:"holders,omitempty"`
	HeldBy  []leasedPart `json:"heldBy,omitempty"`
	Refill  int64        `json:"refill,omitempty"`
	// Period is a word or a duration, as in a policy. It is empty where the calendar gives the length.
	Period     string    `json:"period,omitempty"`
	Window     string    `json:"window,omitempty"`
	WindowEnd  time.Time `json:"windowEnd,omitzero"`
	FullAt     time.Time `json:"fullAt,omitzero"`
	Mode       string    `json:"mode"`
	Overridden bool      `json:"overridden,omitempty"`
}

// leasedPart is what one instance leases of a limit.
type leasedPart struct {
	Holder string `json:"holder"`
	// Capacity and RefillPerSecond are missing of a window.
	Capacity        int64     `json:"capacity,omitempty"`
	RefillPerSecond float64   `json:"refillPerSecond,omitempty"`
	Held            int64     `json:"held"`
	Ends            time.Time `json:"ends"`
	Ended           bool      `json:"ended,omitempty"`
}

// usage serves what the budgets of a tenant have now.
func (s *Server) usage(c *call) error {
	in, err := c.effectiveInput()
	if err != nil {
		return err
	}
	found, err := s.cfg.Control.Usage(c.Context(), c.actor, in)
	if err != nil {
		return err
	}
	out := budgetUsage{
		Tenant: in.Tenant, Grade: gradeBudget, Revision: found.Policy, Tier: found.Tier, TierFrom: found.TierFrom, Mode: found.Mode.String(),
		Blocked: found.Blocked, Unlimited: found.Unlimited, Misfit: found.Misfit, At: found.At, Budgets: []budget{},
	}
	for i := range found.Budgets {
		out.Budgets = append(out.Budgets, budgetOf(&found.Budgets[i]))
	}
	for i := range found.Backstop {
		out.Backstop = append(out.Backstop, budgetOf(&found.Backstop[i]))
	}
	return c.write(http.StatusOK, out)
}

func budgetOf(b *control.Budget) budget {
	l := &b.Limit
	out := budget{
		Level: b.Owner.Level.String(), Name: b.Owner.Name, Part: b.Owner.Part, Limit: l.Name, Unit: l.Unit, Capacity: l.Capacity,
		Used: b.Used, Remaining: b.Remaining, Overdraft: b.Overdraft, WindowEnd: b.WindowEnd, FullAt: b.FullAt, Mode: l.Mode.String(),
		Overridden: b.Overridden, Held: b.Held, Holders: b.Holders,
	}
	for _, p := range b.HeldBy {
		out.HeldBy = append(out.HeldBy, leasedPart{p.Holder, p.Capacity, p.Refill, p.Level, p.Ends, p.EndsIn <= 0})
	}
	out.Refill, out.Period, out.Window = termsOf(l)
	return out
}

// termsOf says how a limit comes back: how much, where that is not all of it, in which period, and in which kind of window.
func termsOf(l *bucket.Limit) (refill int64, period, window string) {
	if l.Refill != l.Capacity {
		refill = l.Refill
	}
	if l.Period > 0 {
		period = tiers.Period(l.Period).String()
	}
	if l.Window.Kind != bucket.TokenBucket {
		window = l.Window.Kind.String()
	}
	return refill, period, window
}
