package bucket

import (
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
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
		rules := buckets[i].Limits.rules
		if e := s.find(s.bucketKey(tenant, buckets[i].Owner), now); e != nil {
			entries[i] = e
			if e.ledger.load(rules, spends[k:k+len(rules)], now) {
				ahead |= 1 << i
			}
		}
		k += len(rules)
	}
	return ahead
}

// save stores what those limits of one owner have spent that have a bit in changed. An owner that owes nothing is
// forgotten, which means the same.
func (s *shard) save(tenant tenantKey, b *Bucket, e *entry, spends []spent, changed uint64, now int64) {
	// An entry that was loaded may have been evicted since, to make room for another of this call.
	if e == nil || e.weight == 0 {
		fresh := s.obtain(s.bucketKey(tenant, b.Owner), now)
		if e != nil {
			fresh.ledger = e.ledger
		}
		e = fresh
	}
	e.expires = e.ledger.store(b.Limits, spends, changed, now)
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
func (s *shard) charge(take *Take, tenant tenantKey, entries *[MaxLimits]*entry, spends *spentArray, ahead uint64, now int64) (Result, shortfall) {
	verdict, short := judge(take.Buckets, spends, take.Amounts, now)
	result := Result{Verdict: verdict}
	k := 0
	for i := range take.Buckets {
		rules, changed := take.Buckets[i].Limits.rules, uint64(0)
		for j := range rules {
			if verdict == Admitted && rules[j].take(&spends[k+j], &short, k+j, take.Amounts, now) {
				changed |= 1 << j
			}
		}
		if changed > 0 || ahead>>i&1 == 1 {
			s.save(tenant, &take.Buckets[i], entries[i], spends[k:k+len(rules)], changed, now)
		}
		k += len(rules)
	}
	result.fill(take, spends, now, short, true)
	result.observed(take, spends, now)
	if verdict == Admitted && result.charged() {
		result.Receipt.issue(take, now, short)
	}
	return result, short
}

// takeKeyed does what the record of the key says.
func (s *shard) takeKeyed(take *Take, tenant tenantKey, key entryKey, entries *[MaxLimits]*entry, spends *spentArray, ahead uint64, now int64) (result Result, judged bool) {
	var held *record
	if e := s.find(key, now); e != nil {
		held = e.record
	}
	ruling := held.ruleOn(take.Claim, now)
	if ruling == rulingCharge {
		var short shortfall
		result, short = s.charge(take, tenant, entries, spends, ahead, now)
		if result.Verdict == Admitted {
			s.hold(key, held, take, now, false, short)
		}
		return result, true
	}
	result.fill(take, spends, now, shortfall{}, false)
	switch ruling {
	case rulingRepeat, rulingFreeRepeat:
		if ruling == rulingFreeRepeat {
			held.repeats++
		}
		result.Verdict, result.Repeat = Admitted, true
		s.hold(key, held, take, now, true, shortfall{})
	case rulingAgain:
		if held.repeat {
			result.Verdict, result.Repeat = Admitted, true
		} else {
			result.again(take, held.takenAt, held.limits, held.short)
		}
	case rulingReplay:
		result.Verdict, result.Answer = Replayed, append([]byte{}, held.answer...)
	case rulingInFlight:
		result.Verdict = InFlight
		result.RetryAfter = min(milliseconds(held.leaseUntil-now), maxInFlightRetry)
	case rulingReused:
		result.Verdict = KeyReused
	case rulingUnknown:
		result.Verdict = OutcomeUnknown
	default:
		result.Verdict = AnswerUnavailable
	}
	return result, false
}

// hold writes the claim of an attempt.
func (s *shard) hold(key entryKey, held *record, take *Take, now int64, repeat bool, short shortfall) {
	if held == nil {
		held = &record{}
	}
	held.hold(take, now, repeat, short)
	e := s.obtain(key, now)
	e.record, e.expires = held, held.expires
	s.weigh(e, 1)
}

// endClaim ends the claim if the attempt holds it.
func (s *shard) endClaim(tenant tenantKey, end *ClaimSettlement, now int64) bool {
	e := s.find(s.key(tenant, recordEntry, end.Claim.RecordName()), now)
	if e == nil || !e.record.heldBy(end.Claim) {
		return false
	}
	if end.Outcome == idempotency.Released {
		if e.record.release(now) {
			s.remove(e)
		}
		return true
	}
	answer, weight := end.Answer, 1+int64(len(end.Answer)+answerUnit-1)/answerUnit
	if weight > s.store.records {
		// An answer that no room can hold is not stored.
		answer, weight = nil, 1
	}
	e.record.done(answer)
	s.weigh(e, weight)
	return true
}

// markSettled reports whether this is the first settlement of a receipt that is young enough.
func (s *shard) markSettled(tenant tenantKey, receipt *Receipt, now int64) bool {
	if now-receipt.takenAt >= int64(MaxReceiptAge/time.Millisecond) {
		return false
	}
	key := s.key(tenant, settledEntry, string(receipt.id[:]))
	if s.find(key, now) != nil {
		return false
	}
	s.obtain(key, now).expires = now + int64(MaxReceiptAge/time.Millisecond)
	return true
}

// change replaces what each limit has spent by what the function makes of it.
func (s *shard) change(tenant tenantKey, buckets []Bucket, now int64, to func(k int, rule *rule, was spent) spent) []LimitState {
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
