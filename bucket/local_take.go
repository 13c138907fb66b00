package bucket

import (
	"context"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// knownLeast and knownShare are for how long what is left of a limit is believed by default: so long, or that part of the
// time in which the limit comes back, and at most so long: others take as fast from a limit a month as from one a minute.
const (
	knownLeast = time.Second
	knownMost  = 5 * time.Second
	knownShare = 60
)

// Take judges a take that the store cannot answer, by this instance's shares of the limits that fail local or bounded;
// others are not judged. late says that the call has not left this process, which says nothing of the store. The verdict
// is [Admitted], [Limited], [Blocked] where the last answer of the store was, or [Never] where the share is too small to
// wait for: there it is no verdict on the limit itself. The states of the limits show the limits themselves, with what is
// left of the share. Claims and candidates are ignored, and override records hold as the last answer of the store has
// shown them.
//
// A take that may have been charged by the store nevertheless is charged here once more.
func (l *local) Take(take *Take, late bool) Result {
	j := localTake{local: l, take: take, now: l.now(), instances: l.Instances()}
	j.since = l.missed(j.now, late)
	j.shard, j.key = l.shard(take.Tenant)
	j.shard.mu.Lock()
	defer j.shard.mu.Unlock()
	j.shard.turn++
	made := l.govern(j.key, take, j.now)
	if made.blocked != nil {
		return Result{Verdict: Blocked, blockedBy: made.blocked, now: j.now}
	}
	if j.evicted = l.evicted.last(j.key); !j.gather(made.buckets) {
		return Result{Verdict: Never, now: j.now}
	}
	return j.judge()
}

// localTake is one take that is judged here.
type localTake struct {
	local *local
	shard *localShard
	take  *Take
	// key is the name under which the tenant is known.
	key string
	now int64
	// since is when the store went away.
	since int64
	// instances is how many there are, zero if nobody knows.
	instances int
	// evicted is when the memory forgot something of the tenant, or zero.
	evicted int64
	// shares are what the memory is asked for, and parts what each of them is a part of.
	shares []Bucket
	parts  []localPart
}

// localPart is the part of the limits of an owner that one of the shares is. known is nil if nothing is remembered of
// the owner yet.
type localPart struct {
	*part
	owner Owner
	known *localOwner
}

// gather finds the shares and has them begin with what they have, and charges nothing. It returns false if a limit
// refuses of which there is no share, or no room to count it. What limits that fail local admit has to be settled, so
// that their owners must be remembered.
func (j *localTake) gather(buckets []Bucket) bool {
	for i := range buckets {
		b := &buckets[i]
		if !b.Limits.shared {
			continue
		}
		share := j.local.share(b.Limits, j.instances)
		if share.lacks(b, j.take.Amounts) {
			return false
		}
		if p := &share.bounded; p.limits.Len() > 0 {
			if j.evicted > 0 {
				j.beginBounded(p, b.Owner)
			}
			j.ask(b, b.Owner, localPart{part: p, owner: b.Owner})
		}
		if p := &share.local; p.limits.Len() > 0 {
			o := j.known(b.Owner)
			if o == nil {
				return false
			}
			o.begin(j, p)
			j.ask(b, o.as, localPart{part: p, owner: b.Owner, known: o})
		}
	}
	// Where there is too little room the memory may have forgotten one of them for another.
	return j.local.evicted.last(j.key) == j.evicted
}

// ask adds a share of a bucket, which the memory has under the name of an owner.
func (j *localTake) ask(b *Bucket, as Owner, p localPart) {
	j.shares = append(j.shares, Bucket{Owner: as, Limits: p.limits, Amounts: b.Amounts})
	j.parts = append(j.parts, p)
}

// known returns what is remembered of an owner, nil if there is no room for it.
func (j *localTake) known(owner Owner) *localOwner {
	t := j.shard.tenant(j.local, j.key, j.take.Tenant)
	if t == nil {
		return nil
	}
	t.heard = j.now
	return j.shard.owner(j.local, t, owner)
}

// unknownSince is when nothing was left of what is not known: when the store went, or something was forgotten since.
func (j *localTake) unknownSince() int64 {
	return max(j.since, j.evicted, j.local.owners.last(j.key))
}

// judge charges all shares or none.
func (j *localTake) judge() Result {
	taken, err := j.local.memory.Take(context.Background(), Take{
		Tenant: j.take.Tenant, Buckets: j.shares, Amounts: j.take.Amounts, States: j.take.States,
	})
	if err != nil {
		// No store would judge it.
		return Result{Verdict: Never, now: j.now}
	}
	states := taken.Limits
	for i := range j.parts {
		p := &j.parts[i]
		n := len(p.of)
		if taken.Verdict == Admitted {
			j.spend(p, states[:n])
		}
		p.show(states[:n])
		if i > 0 && j.parts[i-1].owner == p.owner {
			before := len(j.parts[i-1].of)
			at := len(taken.Limits) - len(states) - before
			inOrder(taken.Limits[at:at+before+n], slices.Concat(j.parts[i-1].of, p.of))
		}
		states = states[n:]
	}
	if t := j.shard.tenants[j.key]; t != nil && taken.Verdict == Admitted {
		t.admit(j.take)
	}
	return Result{Verdict: taken.Verdict, RetryAfter: taken.RetryAfter, Limits: taken.Limits, now: j.now}
}

// spend notes what a share was charged, to be settled. Where there is no room for the owner it is not: of limits that
// fail bounded what is admitted stays within the multiple all the same.
func (j *localTake) spend(p *localPart, states []LimitState) {
	for n, place := range p.of {
		if states[n].Charged == 0 {
			continue
		}
		if p.known == nil {
			if p.known = j.known(p.owner); p.known == nil {
				return
			}
		}
		p.known.spend(p.whole, place, &states[n], j.now)
		j.shard.owe(j.local, j.shard.tenants[j.key], p.known)
	}
}

// show makes the states of the shares those of the limits themselves. Of a multiple more may be left than the whole.
func (p *localPart) show(states []LimitState) {
	for n, place := range p.of {
		rule, shown := &p.whole.rules[place], &states[n]
		shown.Owner, shown.Limit, shown.Overridden = p.owner, rule.limit, rule.overridden
		shown.Remaining = min(shown.Remaining, rule.Capacity)
	}
}

// inOrder puts the states of one owner in the order of their places.
func inOrder(states []LimitState, places []int) {
	for i := range places {
		for k := i; k > 0 && places[k] < places[k-1]; k-- {
			places[k], places[k-1] = places[k-1], places[k]
			states[k], states[k-1] = states[k-1], states[k]
		}
	}
}

// beginBounded empties the limits that fail bounded of which the memory has nothing: what they had spent may have been
// forgotten, and has come back since then with time alone.
func (j *localTake) beginBounded(p *part, owner Owner) {
	ledger := j.ledger(owner)
	var spends spentArray
	fresh := uint64(0)
	for i := range p.limits.rules {
		if r := &p.limits.rules[i]; ledger.Find(r.ID, i) == nil {
			spends[i] = r.from(r.empty(j.evicted), j.evicted, j.now)
			fresh |= 1 << i
		}
	}
	j.write(owner, p, &ledger, &spends, fresh)
}

// begin makes the part what the owner is judged by in the take. A limit that was not judged here before starts with its share
// of what is known to be left. One that was goes on from there, under whatever policy.
func (o *localOwner) begin(j *localTake, p *part) {
	forgotten := j.evicted >= o.began
	// The store has answered others since the owner was judged.
	interrupted := j.instances != 1 && o.used < j.since
	if o.share == p && !forgotten && !interrupted {
		o.used = max(o.used, j.now)
		return
	}
	var was, is state.Owner
	switch {
	case o.share == nil || forgotten:
		if o.share != nil {
			o.known = nil
		}
		o.share, o.began = &part{limits: &Limits{}}, j.now
	case interrupted:
		// Limits that the part lacks start with nothing if they are judged again.
		was, o.known = j.ledger(o.as), nil
	default:
		was = j.ledger(o.as)
		is = was
	}
	var spends spentArray
	fresh, rules := uint64(0), p.limits.rules
	was.Load(p.limits.compiled.All, spends[:len(rules)], o.used)
	for i := range rules {
		switch rule := &rules[i]; {
		case was.Find(rule.ID, i) == nil && o.share.limits.place(rule.ID) < 0:
			spends[i] = o.start(j, p, i)
		case interrupted:
			spends[i] = o.resume(j, rule, spends[i])
		default:
			continue
		}
		fresh |= 1 << i
	}
	o.share, o.used = p, max(o.used, j.now)
	if fresh != 0 {
		j.write(o.as, p, &is, &spends, fresh)
	}
}

// resume returns what a limit goes on from that had spent so much when the owner was judged last: nobody knows what of the
// budget the store has given others since, so that what came back before it went away does not count.
func (o *localOwner) resume(j *localTake, rule *rule, spent state.Spent) state.Spent {
	since := j.unknownSince()
	if !j.local.believes(rule.limit, j.instances, since-o.used) {
		spent = rule.empty(since)
	}
	if other := spent.Other; other != nil {
		then := other.At(o.used)
		spent.Other = &then
	}
	return rule.from(spent, since, j.now)
}

// start returns what a limit of the part has spent that is judged here for the first time.
func (o *localOwner) start(j *localTake, p *part, i int) state.Spent {
	rule := &p.limits.rules[i]
	known := o.find(rule.ID)
	if known == nil || !j.local.believes(rule.limit, j.instances, j.since-o.at) {
		since := j.unknownSince()
		return rule.from(rule.empty(since), since, j.now)
	}
	whole := p.whole.rules[p.of[i]].Capacity
	percent, of := int64(j.local.config.Percent), 100*int64(j.instances)
	tokens := rule.Capacity - portion(max(0, whole-known.spent), percent, of)
	if known.spent > whole {
		// Under a larger policy that is not beyond the capacity.
		tokens += portion(known.spent-whole, percent, of) + 1
	}
	if rule.Tag == state.TokenBucket && known.end > 0 {
		// Nobody knows its terms: as a window it does not come back too early.
		return rule.Read(&state.Entry{ID: rule.ID, Terms: state.Terms{Tag: state.FixedWindow, Length: known.end - o.at}, Debt: tokens, End: known.end}, j.now)
	}
	return rule.from(state.Spent{Debt: state.Product(tokens, rule.Unit()), End: known.end}, o.at, j.now)
}

// believes says whether what was known of a limit so long before the store went away still counts.
func (l *local) believes(limit *Limit, instances int, age int64) bool {
	switch known := l.config.KnownFor; {
	case instances == 1:
		return true
	case known < 0:
		return false
	case known > 0:
		return milliseconds(age) <= known
	default:
		return milliseconds(age) <= min(max(knownLeast, limit.Length()/knownShare), knownMost)
	}
}

// from returns what is left by now of something that was spent, whose debt is taken for that of a date.
func (r *rule) from(s state.Spent, date, now int64) state.Spent {
	if s.Other != nil {
		e := *s.Other
		if e.Tag == state.TokenBucket {
			e.Date = date
		}
		return r.Read(&e, now)
	}
	if r.Tag == state.TokenBucket {
		return state.Spent{Debt: r.Decay(s.Debt, now-date)}
	}
	if s.Debt+s.Previous > 0 && s.End == 0 {
		// The store knows of no open window and yet has less than all: it has said so of another limit.
		s.End = r.empty(now).End
	}
	return s
}

// empty is a budget of which nothing was left at the time.
func (r *rule) empty(at int64) state.Spent {
	switch {
	case r.Tag == state.TokenBucket:
		return state.Spent{Debt: r.Full}
	case r.Tag == state.SlidingWindow:
		return state.Spent{Previous: r.Capacity, End: at + r.R}
	case r.Windows != nil:
		return state.Spent{Debt: r.Capacity, End: r.Windows.Around(at).To}
	default:
		return state.Spent{Debt: r.Capacity, End: at + r.R}
	}
}

// ledger is what the memory has under the name of an owner.
func (j *localTake) ledger(as Owner) state.Owner {
	stored, _ := j.local.memory.read(context.Background(), j.take.Tenant, bucketAddress(&as, ""))
	// It has nothing else than what it has written itself.
	ledger, _ := state.ReadOwner(stored)
	return ledger
}

// write has the memory keep what those limits of a part have spent that have a bit in changed.
func (j *localTake) write(as Owner, p *part, ledger *state.Owner, spends *spentArray, changed uint64) {
	limits, value := p.limits.compiled, []byte(nil)
	expires := ledger.Store(limits, spends[:len(limits.All)], changed, j.now)
	if expires > j.now {
		value = ledger.Pack(limits, j.now)
	}
	j.local.memory.keep(j.take.Tenant, &as, value, expires)
}
