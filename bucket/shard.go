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
// future, after the clock was set back, or in a window of another policy; and one for each that was charged
// under limits of another kind since.
func (s *shard) load(tenant tenantKey, buckets []Bucket, entries *[MaxLimits]*entry, spends *spentArray, now int64) (stale, converted uint64) {
	k := 0
	for i := range buckets {
		rules := buckets[i].Limits.rules
		if e := s.find(s.bucketKey(tenant, buckets[i].Owner), now); e != nil {
			entries[i] = e
			moved, other := e.ledger.load(rules, spends[k:k+len(rules)], now)
			if _, redated := effective(e.ledger.last, now); redated || moved {
				stale |= 1 << i
			}
			if other {
				converted |= 1 << i
			}
		}
		k += len(rules)
	}
	return stale, converted
}

// save stores what one owner has spent. An owner that owes nothing is forgotten, which means the same.
func (s *shard) save(tenant tenantKey, b *Bucket, e *entry, spends []spent, now int64) {
	at, expires := now, int64(0)
	// An entry that was loaded may have been evicted since, to make room for another of this call.
	if e == nil || e.weight == 0 {
		fresh := s.obtain(s.bucketKey(tenant, b.Owner), now)
		if e != nil {
			fresh.ledger, fresh.expires = e.ledger, e.expires
		}
		e = fresh
	}
	if e.expires != 0 {
		at, _ = effective(e.ledger.last, now)
		expires = e.expires
	}
	e.expires = e.ledger.store(b.Limits.rules, spends, at, now, expires)
	if e.expires <= now {
		s.remove(e)
	}
}

// take does any take. It returns whether the budgets were judged, and not the claim alone.
func (s *shard) take(take *Take, tenant tenantKey, now int64) (result Result, judged bool) {
	var entries [MaxLimits]*entry
	var spends spentArray
	stale, _ := s.load(tenant, take.Buckets, &entries, &spends, now)
	if take.Claim == nil {
		result, _ = s.charge(take, tenant, &entries, &spends, stale, now)
		return result, true
	}
	key := s.key(tenant, recordEntry, take.Claim.RecordName())
	return s.takeKeyed(take, tenant, key, &entries, &spends, stale, now)
}

// charge judges the take without regard to its key and charges it if it is admitted. It returns a bit
// for each limit that was left uncharged.
func (s *shard) charge(take *Take, tenant tenantKey, entries *[MaxLimits]*entry, spends *spentArray, stale uint64, now int64) (Result, uint64) {
	verdict, uncharged := judge(take.Buckets, spends, take.Amounts, now)
	result := Result{Verdict: verdict}
	if verdict != Admitted {
		uncharged = 0
	}
	k := 0
	for i := range take.Buckets {
		rules := take.Buckets[i].Limits.rules
		write := stale>>i&1 == 1
		for j := range rules {
			amount := take.Amounts.Of(rules[j].limit.Unit)
			if verdict == Admitted && amount > 0 && uncharged>>(k+j)&1 == 0 {
				spends[k+j] = rules[j].charge(spends[k+j], amount, now)
				write = true
			}
		}
		if write {
			s.save(tenant, &take.Buckets[i], entries[i], spends[k:k+len(rules)], now)
		}
		k += len(rules)
	}
	result.fill(take, spends, now, uncharged, true)
	result.observed(take, spends, now)
	if verdict == Admitted && result.charged() {
		result.Receipt.issue(take, now, uncharged)
	}
	return result, uncharged
}

// takeKeyed does what the record of the key says.
func (s *shard) takeKeyed(take *Take, tenant tenantKey, key entryKey, entries *[MaxLimits]*entry, spends *spentArray, stale uint64, now int64) (result Result, judged bool) {
	var held *record
	if e := s.find(key, now); e != nil {
		held = e.record
	}
	ruling := held.ruleOn(take.Claim, now)
	if ruling == rulingCharge {
		var uncharged uint64
		result, uncharged = s.charge(take, tenant, entries, spends, stale, now)
		if result.Verdict == Admitted {
			s.hold(key, held, take.Claim, now, false, uncharged)
		}
		return result, true
	}
	result.fill(take, spends, now, 0, false)
	switch ruling {
	case rulingRepeat, rulingFreeRepeat:
		if ruling == rulingFreeRepeat {
			held.repeats++
		}
		result.Verdict, result.Repeat = Admitted, true
		s.hold(key, held, take.Claim, now, true, 0)
	case rulingAgain:
		result.again(take, held.takenAt, held.repeat, held.uncharged)
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
func (s *shard) hold(key entryKey, held *record, claim *idempotency.Claim, now int64, repeat bool, uncharged uint64) {
	if held == nil {
		held = &record{}
	}
	held.hold(claim, now, repeat, uncharged)
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

// change replaces what each limit has spent by what the function makes of it. A settlement, whose limits
// may be those of an earlier policy, leaves owners as they are that were charged under another kind since.
func (s *shard) change(tenant tenantKey, buckets []Bucket, settles bool, now int64, to func(k int, rule *rule, was spent) spent) []LimitState {
	var entries [MaxLimits]*entry
	var before, after spentArray
	_, converted := s.load(tenant, buckets, &entries, &before, now)
	k := 0
	for i := range buckets {
		rules := buckets[i].Limits.rules
		first, touched := k, false
		for j := range rules {
			if after[k] = before[k]; !settles || converted>>i&1 == 0 {
				after[k] = to(k, &rules[j], before[k])
			}
			touched = touched || after[k] != before[k]
			k++
		}
		if touched {
			s.save(tenant, &buckets[i], entries[i], after[first:k], now)
		}
	}
	return changed(buckets, &before, &after, now)
}
