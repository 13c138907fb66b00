package bucket

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

const (
	// memoryShards is how many locks the tenants of a Memory share.
	memoryShards = 64
	// sweepStep is how many entries are looked at for each new one, to remove those that have expired.
	// More than one, so that entries leave faster than they can come.
	sweepStep = 2
	// sweepEvery is after how many calls as many are looked at even if there is no new one. Not after
	// each, because an entry that was not used for a while is not in the cache of the processor.
	sweepEvery = 8
	// answerUnit is how many bytes of an answer count as one more entry.
	answerUnit = 256
)

// shard holds the entries of some tenants, all of those of each.
type shard struct {
	mu sync.Mutex
	// index holds the entries by the hash of their key: a map of numbers takes half the time of one of
	// keys. Entries of one hash are a list.
	index map[uint64]*entry
	pools [poolKinds]pool
	store *Memory
	read  reading
	// calls counts the calls, and due the entries to be looked at by the next one.
	calls, due int
	// overrides are the override records by tenant. No tenant displaces those of another.
	overrides map[string]*overrideSet
}

// sweep looks at a few entries and removes those that have expired.
func (s *shard) sweep(now int64) {
	s.calls++
	if s.calls%sweepEvery == 0 {
		s.due += sweepStep
	}
	if s.due == 0 {
		return
	}
	due := s.due
	s.due = 0
	for kind := range s.pools {
		p := &s.pools[kind]
		for range due {
			if len(p.list) == 0 {
				break
			}
			if p.cursor >= len(p.list) {
				p.cursor = 0
			}
			if e := p.list[p.cursor]; e.expires <= now {
				s.remove(e)
				// Where one has expired, more have.
				s.due = sweepStep
			} else {
				p.cursor++
			}
		}
	}
}

// load finds the entries of the buckets and what they have spent by now. It returns a bit for each
// bucket that even a call that changes nothing has to write, because its state lies too far in the
// future, after the clock was set back.
func (s *shard) load(tenant tenantKey, buckets []Bucket, entries *[MaxLimits]*entry, spends *spentArray, now int64) (ahead uint64) {
	k := 0
	for i := range buckets {
		rules := buckets[i].Limits.compiled
		if e := s.find(s.bucketKey(tenant, buckets[i].Owner), now); e != nil {
			entries[i] = e
			if e.ledger.Load(rules.All, spends[k:k+len(rules.All)], now) {
				ahead |= 1 << i
			}
		}
		k += len(rules.All)
	}
	return ahead
}

// save stores what those limits of one owner have spent that have a bit in changed. An owner that owes nothing is
// forgotten, which means the same.
func (s *shard) save(tenant tenantKey, b *Bucket, e *entry, spends []state.Spent, changed uint64, now int64) {
	// An entry that was loaded may have been evicted since, to make room for another of this call.
	if e == nil || e.weight == 0 {
		fresh := s.obtain(s.bucketKey(tenant, b.Owner), now)
		if e != nil {
			fresh.ledger = e.ledger
		}
		e = fresh
	}
	e.expires = e.ledger.Store(b.Limits.compiled, spends, changed, now)
	if e.expires <= now {
		s.remove(e)
	}
}

// take does any take. It returns whether the budgets were judged, and not the claim alone.
func (s *shard) take(take *Take, tenant tenantKey, now int64) (result Result, judged bool) {
	var entries [MaxLimits]*entry
	var spends spentArray
	ahead := s.load(tenant, take.Buckets, &entries, &spends, now)
	if take.Claim == nil {
		result, _ = s.charge(take, tenant, &entries, &spends, ahead, now)
		return result, true
	}
	key := s.key(tenant, recordEntry, take.Claim.RecordName())
	return s.takeKeyed(take, tenant, key, &entries, &spends, ahead, now)
}

// charge judges the take without regard to its key and charges it if it is admitted. It returns which limits were
// charged less than was asked for.
func (s *shard) charge(take *Take, tenant tenantKey, entries *[MaxLimits]*entry, spends *spentArray, ahead uint64, now int64) (Result, state.Shortfall) {
	verdict, short := judge(take.Buckets, spends, take.Amounts, now)
	result := Result{Verdict: verdict}
	k := 0
	for i := range take.Buckets {
		rules, changed := take.Buckets[i].Limits.rules, uint64(0)
		for j := range rules {
			if verdict == Admitted && rules[j].Take(&spends[k+j], &short, k+j, take.Amounts.Of(rules[j].limit.Unit), now) {
				changed |= 1 << j
			}
		}
		if changed > 0 || ahead>>i&1 == 1 {
			s.save(tenant, &take.Buckets[i], entries[i], spends[k:k+len(rules)], changed, now)
		}
		k += len(rules)
	}
	result.judged(take, spends, short, now)
	return result, short
}

// takeKeyed does what the record of the key says.
func (s *shard) takeKeyed(take *Take, tenant tenantKey, key entryKey, entries *[MaxLimits]*entry, spends *spentArray, ahead uint64, now int64) (result Result, judged bool) {
	var held state.Record
	if e := s.find(key, now); e != nil {
		held = *e.record
	}
	claim := claimOf(take.Claim, take.Buckets)
	outcome, hold, tail := held.Judge(claim, now)
	var short state.Shortfall
	if outcome == state.Admitted {
		result, short = s.charge(take, tenant, entries, spends, ahead, now)
		if judged = true; result.Verdict != Admitted {
			return result, judged
		}
	} else {
		result.fill(take, spends, now, state.Shortfall{}, false)
		result.keyed(take, outcome, tail)
	}
	if hold.State != 0 && (judged || outcome == state.Repeat) {
		hold.Hold(outcome, claim.Sum, packShort(&short, take.Buckets), now)
		e := s.obtain(key, now)
		e.record, e.expires = &hold, hold.Ends
		s.weigh(e, 1)
	}
	return result, judged
}

// endClaim ends the claim if the attempt holds it.
func (s *shard) endClaim(tenant tenantKey, end *ClaimSettlement, now int64) bool {
	e := s.find(s.key(tenant, recordEntry, end.Claim.RecordName()), now)
	if e == nil || !e.record.Holds(end.Claim.Attempt, now) {
		return false
	}
	as, answer, weight := endOf(end), string(end.Answer), 1+int64(len(end.Answer)+answerUnit-1)/answerUnit
	if as != state.Answered || weight > s.store.records {
		// An answer that no room can hold is not stored.
		as, answer, weight = min(as, state.Done), "", 1
	}
	if !e.record.End(as, answer, now) {
		s.remove(e)
		return true
	}
	s.weigh(e, weight)
	return true
}

// markSettled reports whether this is the first settlement of a receipt that is young enough.
func (s *shard) markSettled(tenant tenantKey, receipt *Receipt, now int64) bool {
	if now-receipt.takenAt >= int64(maxReceiptAge/time.Millisecond) {
		return false
	}
	key := s.key(tenant, settledEntry, string(receipt.id[:]))
	if s.find(key, now) != nil {
		return false
	}
	s.obtain(key, now).expires = now + int64(maxReceiptAge/time.Millisecond)
	return true
}

// change replaces what each limit has spent by what the function makes of it.
func (s *shard) change(tenant tenantKey, buckets []Bucket, now int64, to func(k int, r *rule, was state.Spent) state.Spent) []LimitState {
	var entries [MaxLimits]*entry
	var before, after spentArray
	s.load(tenant, buckets, &entries, &before, now)
	k := 0
	for i := range buckets {
		rules, touched := buckets[i].Limits.rules, uint64(0)
		for j := range rules {
			if after[k+j] = to(k+j, &rules[j], before[k+j]); after[k+j] != before[k+j] {
				touched |= 1 << j
			}
		}
		if touched > 0 {
			s.save(tenant, &buckets[i], entries[i], after[k:k+len(rules)], touched, now)
		}
		k += len(rules)
	}
	return changed(buckets, &before, &after, now)
}

// tryCandidate judges the candidate, whose buckets are as overrides make them, and charges it if it admits.
func (s *shard) tryCandidate(take *Take, buckets []Bucket, tenant tenantKey, now int64) *CandidateResult {
	// No tenant has this name: one that starts with ~ has no other in it.
	name := "~" + take.Candidate.ID + "~" + tenant.name
	kept := tenantKey{name: name, hash: maphash.String(s.store.seed, name)}
	trial := Take{Buckets: buckets, Amounts: take.Amounts}
	var result Result
	if !s.takeFast(&trial, kept, now, &result) {
		result, _ = s.take(&trial, kept, now)
	}
	return &CandidateResult{Verdict: result.Verdict, RetryAfter: result.RetryAfter, Limits: result.Limits}
}

// readingAge is how long a reading of the system's clock is used.
const readingAge = 10 * time.Millisecond

// reading is the system's clock, of which the monotonic half alone is read most of the time: that takes
// half as long. A clock that was set is seen after readingAge.
type reading struct {
	at time.Time
	// nanoseconds is at, since 1970.
	nanoseconds int64
}

// now returns Unix milliseconds.
func (r *reading) now() int64 {
	elapsed := time.Since(r.at)
	if elapsed > readingAge || elapsed < 0 {
		r.at, elapsed = time.Now(), 0
		r.nanoseconds = r.at.UnixNano()
	}
	return (r.nanoseconds + int64(elapsed)) / int64(time.Millisecond)
}

// now is the time of the store in Unix milliseconds.
func (s *shard) now() int64 {
	if s.store.clock != nil {
		return s.store.clock().UnixMilli()
	}
	return s.read.now()
}
