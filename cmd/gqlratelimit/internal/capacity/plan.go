package capacity

import (
	"math"
	"slices"
	"time"
)

// Demand is what a limiter has to serve.
type Demand struct {
	// Rate is how many decisions there are in a second at the peak, and MeanRate over a day.
	Rate     float64 `json:"rate"`
	MeanRate float64 `json:"meanRate"`
	// Tenants is how many have spent something of which not all has come back, and Users the same of the owners below them.
	Tenants int64 `json:"tenants"`
	Users   int64 `json:"users"`
	// Limits has one number for each owner that a decision charges, the tenant first: how many limits it has.
	Limits []int `json:"limits"`
	// Keyed is the share of decisions with an idempotency key, whose records live for KeyLife and have answers of AnswerBytes.
	Keyed       float64       `json:"keyed"`
	KeyLife     time.Duration `json:"-"`
	AnswerBytes int64         `json:"answerBytes"`
	// Settled is the share of decisions without a key that are settled.
	Settled float64 `json:"settled"`
	// Usage says that usage is counted.
	Usage bool `json:"usage"`
	// Skew is the exponent of the Zipf distribution of decisions over tenants, 0 for equal ones.
	Skew float64 `json:"skew"`
	// Spread is over how many instances the decisions of a tenant are spread. A tenant is leased by them from LeaseFrom decisions a second
	// in each, and by none if that is 0.
	Spread    int64   `json:"spread"`
	LeaseFrom float64 `json:"leaseFrom"`

	// Pipelined says that callers share pipelines.
	Pipelined bool `json:"pipelined"`
	// Busy is the share of a core that a Redis may use, and Fill that of its memory. NodeMemory is what a node has, in bytes.
	Busy       float64 `json:"busy"`
	Fill       float64 `json:"fill"`
	NodeMemory int64   `json:"nodeMemory"`
	// Replicas is how many each master has. Price is that of a node, whatever the currency and the time are.
	Replicas int64   `json:"replicas"`
	Price    float64 `json:"price"`
}

// Work is something that Redis does all the time.
type Work struct {
	What string `json:"what"`
	// PerSecond is how often, Micros what one takes of Redis, and Cores what all take.
	PerSecond float64 `json:"perSecond"`
	Micros    float64 `json:"micros"`
	Cores     float64 `json:"cores"`
}

// Kept is something that Redis has in its memory.
type Kept struct {
	What string `json:"what"`
	// Number is how many there are, Bytes what one takes, and Total what all take.
	Number float64 `json:"number"`
	Bytes  float64 `json:"bytes"`
	Total  float64 `json:"total"`
}

// Plan is what serves a demand. All of it is calculated.
type Plan struct {
	// LeasedTenants and LeasedShare are how many tenants instances lease, and of which share of all decisions.
	LeasedTenants float64 `json:"leasedTenants"`
	LeasedShare   float64 `json:"leasedShare"`
	Work          []Work  `json:"work"`
	Kept          []Kept  `json:"kept"`
	Cores         float64 `json:"cores"`
	Bytes         float64 `json:"bytes"`
	// BusiestTenant is which share of a core the calls about the busiest tenant take, which are all made on one node.
	BusiestTenant float64 `json:"busiestTenant"`
	// MastersForWork and MastersForMemory are how many masters each needs, and Masters the larger one.
	MastersForWork   float64 `json:"mastersForWork"`
	MastersForMemory float64 `json:"mastersForMemory"`
	Masters          float64 `json:"masters"`
	Nodes            float64 `json:"nodes"`
	Cost             float64 `json:"cost"`
	// Remarks are what the numbers do not say.
	Remarks []string `json:"remarks,omitempty"`
}

const (
	// exchangesASecond is how many exchanges an instance makes for a leased tenant at most.
	exchangesASecond = 2
	// usageHours is for how many hours usage is kept in Redis.
	usageHours = 48
	micros     = 1e6
)

// New calculates what serves the demand, which was checked.
func New(d *Demand, f *Figures) *Plan {
	p := &Plan{}
	processor := &f.Alone
	if d.Pipelined {
		processor = &f.Pipelined
	}
	p.lease(d)
	p.work(d, processor)
	p.memory(d, &f.Memory)
	for _, w := range p.Work {
		p.Cores += w.Cores
	}
	for _, k := range p.Kept {
		p.Bytes += k.Total
	}
	p.MastersForWork = max(1, math.Ceil(p.Cores/d.Busy))
	p.MastersForMemory = max(1, math.Ceil(p.Bytes/(float64(d.NodeMemory)*d.Fill)))
	p.Masters = max(p.MastersForWork, p.MastersForMemory)
	p.Nodes = p.Masters * float64(1+d.Replicas)
	p.Cost = p.Nodes * d.Price
	p.remark(d)
	return p
}

// lease says which tenants are leased.
func (p *Plan) lease(d *Demand) {
	if d.LeaseFrom == 0 {
		return
	}
	all := harmonic(float64(d.Tenants), d.Skew)
	// The busiest has so many decisions a second in each instance.
	busiest := d.Rate / all / float64(d.Spread)
	switch {
	case busiest < d.LeaseFrom:
		return
	case d.Skew == 0:
		p.LeasedTenants = float64(d.Tenants)
	default:
		p.LeasedTenants = min(float64(d.Tenants), math.Floor(math.Pow(busiest/d.LeaseFrom, 1/d.Skew)))
	}
	p.LeasedShare = harmonic(p.LeasedTenants, d.Skew) / all
}

// does adds work.
func (p *Plan) does(what string, perSecond, each float64) {
	if perSecond > 0 {
		p.Work = append(p.Work, Work{what, perSecond, each, perSecond * each / micros})
	}
}

func (p *Plan) work(d *Demand, f *Processor) {
	leased := d.Rate * p.LeasedShare
	calls, whole := d.Rate-leased, f.take(d.Limits)
	p.does("takes", calls, whole)
	if len(d.Limits) > 1 {
		// What users and operations have is not leased.
		p.does("takes of owners below a leased tenant", leased, f.take(d.Limits[1:]))
		calls += leased
	} else {
		p.does("claims of leased tenants", leased*d.Keyed, f.take([]int{1}))
		calls += leased * d.Keyed
	}
	p.does("idempotency keys", d.Rate*d.Keyed, f.Claim)
	p.does("settlements", d.Rate*(1-p.LeasedShare)*(1-d.Keyed)*d.Settled, f.Settle)
	if d.Usage {
		p.does("usage", calls, f.Usage)
	}
	p.does("exchanges", p.LeasedTenants*float64(d.Spread)*exchangesASecond, f.exchange(d.Spread))

	// The busiest tenant by itself.
	share := 1 / harmonic(float64(d.Tenants), d.Skew)
	each := whole + d.Keyed*f.Claim + (1-d.Keyed)*d.Settled*f.Settle
	if d.Usage {
		each += f.Usage
	}
	p.BusiestTenant = d.Rate * share * each / micros
	if p.LeasedTenants >= 1 {
		each = d.Keyed * (f.take([]int{1}) + f.Claim)
		if len(d.Limits) > 1 {
			each = f.take(d.Limits[1:]) + d.Keyed*f.Claim
		}
		p.BusiestTenant = (d.Rate*share*each + float64(d.Spread)*exchangesASecond*f.exchange(d.Spread)) / micros
	}
}

// take is what a take of owners with these numbers of limits takes of Redis.
func (f *Processor) take(limits []int) float64 {
	// The dearest one stands for the call itself.
	most := slices.Max(limits)
	sum := f.Take.of(most) - f.Owner.of(most)
	for _, n := range limits {
		sum += f.Owner.of(n)
	}
	return sum
}

// exchange is what an exchange takes of Redis where an owner has so many holders.
func (f *Processor) exchange(holders int64) float64 { return f.Exchange + f.Holder*float64(holders-1) }

// keeps adds something kept.
func (p *Plan) keeps(what string, number, each float64) {
	if number > 0 {
		p.Kept = append(p.Kept, Kept{what, number, each, number * each})
	}
}

func (p *Plan) memory(d *Demand, f *Memory) {
	p.keeps("states of tenants", float64(d.Tenants), f.Owner.of(d.Limits[0]))
	below := 0.0
	for _, n := range d.Limits[1:] {
		below += f.Owner.of(n)
	}
	p.keeps("states of owners below them", float64(d.Users), below)
	p.keeps("idempotency records", d.MeanRate*d.Keyed*d.KeyLife.Seconds(), f.Record+float64(d.AnswerBytes))
	if d.Usage {
		p.keeps("hours of usage", float64(d.Tenants)*usageHours, f.UsageHour)
	}
	p.keeps("holders of leases", p.LeasedTenants*float64(d.Spread), f.Holding)
}

func (p *Plan) remark(d *Demand) {
	if p.BusiestTenant > d.Busy {
		p.Remarks = append(p.Remarks, "the busiest tenant needs more than a node may be used: all its calls are made on one node, so that more nodes do not help it")
	}
	if p.LeasedTenants > 0 && len(d.Limits) > 1 {
		p.Remarks = append(p.Remarks, "a leased tenant asks Redis for each decision all the same, for the owners below it")
	}
	if d.Replicas == 0 {
		p.Remarks = append(p.Remarks, "a master without a replica takes its budgets with it")
	}
}

// harmonic is the sum of k^-s over k = 1 .. n: exact for the first, and by the integral for the rest.
func harmonic(n, s float64) float64 {
	const exact = 100_000
	sum := 0.0
	for k := 1.0; k <= min(n, exact); k++ {
		sum += math.Pow(k, -s)
	}
	if n <= exact {
		return sum
	}
	from, to := exact+0.5, n+0.5
	if s == 1 {
		return sum + math.Log(to/from)
	}
	return sum + (math.Pow(to, 1-s)-math.Pow(from, 1-s))/(1-s)
}
