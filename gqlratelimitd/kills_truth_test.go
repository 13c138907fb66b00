package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// testimony is what processes have said of operations.
type testimony struct {
	mu  sync.Mutex
	ops map[string]*said
	// answered is what somebody counts who adds the deltas of each reply, and added who adds those of each collection: points of all tenants.
	answered, added int64
	collected       int
	forgot, took    int
	wrong           []string
}

// said is what is known of an operation.
type said struct {
	*operation
	// open are takes that were begun and not ended, and lost those without a reply.
	open, lost int
	// admitted says that a reply has said that it was charged, settling that somebody has begun to correct it, and settled that this was done.
	admitted, settling, settled bool
}

func newTestimony() *testimony { return &testimony{ops: map[string]*said{}} }

// hear takes a line of a process.
func (j *testimony) hear(line string) {
	word, about, _ := strings.Cut(line, " ")
	j.mu.Lock()
	defer j.mu.Unlock()
	switch word {
	case saidAdded:
		n, err := strconv.ParseInt(about, 10, 64)
		if err != nil {
			j.wrong = append(j.wrong, line)
		}
		j.added += n
		j.collected++
		return
	case saidForgot:
		j.forgot++
		return
	case "up":
		return
	}
	s := j.ops[about]
	if s == nil {
		s = &said{operation: operationOf(about)}
		j.ops[about] = s
	}
	switch word {
	case saidTaking:
		s.open++
	case saidTook:
		s.open--
		s.admitted = true
		j.took++
		j.answered += s.asked.Of(bucket.Points)
	case saidAgain:
		s.open--
		s.admitted = true
	case saidLost:
		s.open--
		s.lost++
	case saidNot:
		s.open--
	case saidSettling:
		s.settling = true
	case saidSettled:
		s.settled = true
		j.answered += s.worth.Of(bucket.Points) - s.asked.Of(bucket.Points)
	default:
		j.wrong = append(j.wrong, line)
	}
}

// unfinished are operations of an instance that have a key, and whose client tries again.
func (j *testimony) unfinished(instance string) (names []string) {
	const most = 8
	j.mu.Lock()
	defer j.mu.Unlock()
	for name, s := range j.ops {
		if len(names) < most && s.keyed && !s.settled && (s.open > 0 || s.admitted) && strings.HasPrefix(name, instance+"-") {
			names = append(names, name)
		}
	}
	return names
}

// number reads a number of it.
func (j *testimony) number(n *int) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return *n
}

// row is what is counted under one name.
type row struct{ tenant, unit, field string }

// amount is how much it is.
type amount struct{ net, calls int64 }

// killTruth is what was really charged and not given back.
type killTruth struct {
	rows map[row]amount
	// unknown are operations that were charged and of which no reply has said so.
	charged, unknown int
}

// points are those of all tenants.
func (k *killTruth) points() (sum int64) {
	for r, a := range k.rows {
		if r.unit == string(bucket.Points) && r.field == "" {
			sum += a.net
		}
	}
	return sum
}

// truth reads what was charged from the budget that each operation has for itself, and holds it against that of its tenant and against what
// instances know. No process may run that could change it.
func (j *testimony) truth(ctx context.Context, store *bucket.Redis) (*killTruth, error) {
	b, err := newBudgets()
	if err != nil {
		return nil, err
	}
	all := make(chan *said)
	var mu sync.Mutex
	k := &killTruth{rows: map[row]amount{}}
	var failed atomic.Pointer[error]
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for s := range all {
				states, err := store.Peek(ctx, s.tenant, b.of(s.operation)[1:])
				if err == nil {
					mu.Lock()
					err = k.add(s, spent(states, operationCapacity))
					mu.Unlock()
				}
				if err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	for _, s := range j.ops {
		all <- s
	}
	close(all)
	readers.Wait()
	if err := failed.Load(); err != nil {
		return nil, *err
	}
	for _, tenant := range killTenants {
		states, err := store.Peek(ctx, tenant, []bucket.Bucket{{Owner: bucket.Owner{Level: bucket.Tenant}, Limits: b.tenant}})
		if err != nil {
			return nil, err
		}
		for _, is := range spent(states, tenantCapacity) {
			if want := k.rows[row{tenant: tenant, unit: string(is.Unit)}].net; is.N != want {
				return nil, fmt.Errorf("%s has %d %s in its budget, and its operations have %d in theirs", tenant, is.N, is.Unit, want)
			}
		}
	}
	return k, nil
}

// spent is what limits have less than all.
func spent(states []bucket.LimitState, capacity int64) (amounts bucket.Amounts) {
	for _, s := range states {
		amounts = append(amounts, bucket.Amount{Unit: s.Limit.Unit, N: capacity - s.Remaining + s.Overdraft})
	}
	return amounts
}

// add adds what an operation was charged, which has to be what its instance knows of it.
func (k *killTruth) add(s *said, is bucket.Amounts) error {
	wrong := func(text string) error {
		return fmt.Errorf("%s: %s: charged %v, asked %v, worth %v, keyed %v, open %d, lost %d, admitted %v, settling %v, settled %v",
			s.name, text, is, s.asked, s.worth, s.keyed, s.open, s.lost, s.admitted, s.settling, s.settled)
	}
	switch is.Of(bucket.Requests) {
	case 0:
		for _, a := range is {
			if a.N != 0 {
				return wrong("it is charged in part")
			}
		}
		if s.admitted {
			return wrong("it was admitted, and is not charged")
		}
		return nil
	case 1:
	default:
		return wrong("it is charged more than once")
	}
	if !s.admitted {
		k.unknown++
		if s.open == 0 && s.lost == 0 {
			return wrong("each call has said that it charges nothing")
		}
	}
	k.charged++
	asked, worth := true, true
	for _, a := range is {
		asked, worth = asked && a.N == s.asked.Of(a.Unit), worth && a.N == s.worth.Of(a.Unit)
		k.put(row{s.tenant, string(a.Unit), ""}, amount{net: a.N})
	}
	if !asked && !worth || s.settled && !worth || !s.settling && !asked {
		return wrong("it is neither")
	}
	k.put(row{s.tenant, string(bucket.Points), s.field}, amount{s.asked.Of(bucket.Points), 1})
	return nil
}

func (k *killTruth) put(r row, more amount) {
	if more == (amount{}) {
		return
	}
	is := k.rows[r]
	k.rows[r] = amount{is.net + more.net, is.calls + more.calls}
}
