package bucket

import (
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

const (
	// memoryShards is how many locks the tenants of a Memory share.
	memoryShards = 64
	// sweepStep is how many entries a call looks at to remove those that have expired. More than one,
	// so that entries leave faster than they can come.
	sweepStep = 2
	// answerUnit is how many bytes of an answer count as one more entry.
	answerUnit = 256
)

// shard holds the entries of some tenants, all of those of each.
type shard struct {
	mu    sync.Mutex
	index map[entryKey]*entry
	pools [poolKinds]pool
	store *Memory
}

type entryKind uint8

// The kinds below these are the levels of owners.
const (
	recordEntry entryKind = iota + entryKind(Operation) + 1
	settledEntry
)

type entryKey struct {
	tenant string
	name   string
	kind   entryKind
}

func (k entryKind) pool() poolKind {
	if k >= recordEntry {
		return recordPool
	}
	return bucketPool
}

type entry struct {
	key entryKey
	// expires is the Unix millisecond at which the entry means the same as none.
	expires int64
	place   int
	weight  int64
	ledger  ledger
	record  *record
}

// find returns a living entry or nil. One that has expired is removed, as Redis does, so that a clock
// that is set back does not bring it back.
func (s *shard) find(key entryKey, now int64) *entry {
	e := s.index[key]
	if e != nil && e.expires <= now {
		s.remove(e)
		return nil
	}
	return e
}

// obtain returns the entry of the key, a new one if there is none that lives.
func (s *shard) obtain(key entryKey, now int64) *entry {
	if e := s.find(key, now); e != nil {
		return e
	}
	e := &entry{key: key}
	s.weigh(e, 1)
	list := &s.pools[key.kind.pool()].list
	e.place = len(*list)
	s.index[key] = e
	*list = append(*list, e)
	return e
}

func (s *shard) remove(e *entry) {
	kind := e.key.kind.pool()
	p := &s.pools[kind]
	last := len(p.list) - 1
	moved := p.list[last]
	p.list[e.place] = moved
	moved.place = e.place
	p.list[last] = nil
	p.list = p.list[:last]
	delete(s.index, e.key)
	p.used.Add(-e.weight)
	s.store.room[kind].Add(e.weight)
	e.weight = 0
}

// sweep looks at a few entries and removes those that have expired.
func (s *shard) sweep(now int64) {
	for kind := range s.pools {
		p := &s.pools[kind]
		for range sweepStep {
			if len(p.list) == 0 {
				break
			}
			if p.cursor >= len(p.list) {
				p.cursor = 0
			}
			if e := p.list[p.cursor]; e.expires <= now {
				s.remove(e)
			} else {
				p.cursor++
			}
		}
	}
}

// load finds the entries of the buckets and their debts as they are now.
func (s *shard) load(tenant string, buckets []Bucket, entries *[MaxLimits]*entry, debts *debtArray, now int64) {
	k := 0
	for i := range buckets {
		rules := buckets[i].Limits.rules
		if e := s.find(bucketKey(tenant, buckets[i].Owner), now); e != nil {
			entries[i] = e
			e.ledger.load(rules, debts[k:k+len(rules)], now)
		}
		k += len(rules)
	}
}

// save stores the debts of one owner. An owner without debt is forgotten, which means the same.
func (s *shard) save(tenant string, b *Bucket, e *entry, debts []int64, now int64) {
	at, expires := now, int64(0)
	// An entry that was loaded may have been evicted since, to make room for another of this call.
	if e == nil || e.weight == 0 {
		fresh := s.obtain(bucketKey(tenant, b.Owner), now)
		if e != nil {
			fresh.ledger, fresh.expires = e.ledger, e.expires
		}
		e = fresh
	}
	if e.expires != 0 {
		at, _ = effective(e.ledger.last, now)
		expires = e.expires
	}
	e.expires = e.ledger.store(b.Limits.rules, debts, at, now, expires)
	if e.expires <= now {
		s.remove(e)
	}
}

// redate dates the states anew that lie too far in the future.
func (s *shard) redate(tenant string, buckets []Bucket, entries *[MaxLimits]*entry, debts *debtArray, now int64) {
	k := 0
	for i := range buckets {
		n := len(buckets[i].Limits.rules)
		if e := entries[i]; e != nil {
			if _, redated := effective(e.ledger.last, now); redated {
				s.save(tenant, &buckets[i], e, debts[k:k+n], now)
			}
		}
		k += n
	}
}

// charge judges the take without regard to its key and charges it if it is admitted.
func (s *shard) charge(take *Take, tenant string, entries *[MaxLimits]*entry, debts *debtArray, now int64) Result {
	var result Result
	verdict, uncharged := judge(take.Buckets, debts, take.Amounts)
	result.Verdict = verdict
	result.fill(take, debts, uncharged, verdict == Admitted, true)
	if verdict != Admitted {
		s.redate(tenant, take.Buckets, entries, debts, now)
		return result
	}
	charged := false
	k := 0
	for i := range take.Buckets {
		rules := take.Buckets[i].Limits.rules
		touched := false
		for j := range rules {
			if n := result.Limits[k+j].Charged; n > 0 {
				debts[k+j] += n * rules[j].p
				touched = true
			}
		}
		if touched {
			s.save(tenant, &take.Buckets[i], entries[i], debts[k:k+len(rules)], now)
			charged = true
		} else if entries[i] != nil {
			if _, redated := effective(entries[i].ledger.last, now); redated {
				s.save(tenant, &take.Buckets[i], entries[i], debts[k:k+len(rules)], now)
			}
		}
		k += len(rules)
	}
	if charged {
		result.Receipt = newReceipt(take, now, uncharged)
	}
	return result
}

// takeKeyed does what the record of the key says.
func (s *shard) takeKeyed(take *Take, tenant string, key entryKey, entries *[MaxLimits]*entry, debts *debtArray, now int64) Result {
	var held *record
	if e := s.find(key, now); e != nil {
		held = e.record
	}
	var result Result
	ruling := held.ruleOn(take.Claim, now)
	if ruling == rulingCharge {
		result = s.charge(take, tenant, entries, debts, now)
		if result.Verdict == Admitted {
			s.hold(key, held, take.Claim, now, false, uncharged(result.Limits))
		}
		return result
	}
	result.fill(take, debts, 0, false, false)
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
	default:
		result.Verdict = AnswerUnavailable
	}
	return result
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
func (s *shard) endClaim(tenant string, end *ClaimSettlement, now int64) bool {
	e := s.find(entryKey{tenant: tenant, kind: recordEntry, name: end.Claim.RecordName()}, now)
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
func (s *shard) markSettled(tenant string, receipt *Receipt, now int64) bool {
	if now-receipt.takenAt >= int64(MaxReceiptAge/time.Millisecond) {
		return false
	}
	key := entryKey{tenant: tenant, kind: settledEntry, name: string(receipt.id[:])}
	if s.find(key, now) != nil {
		return false
	}
	s.obtain(key, now).expires = now + int64(MaxReceiptAge/time.Millisecond)
	return true
}

// change replaces the debt of each limit by what the function makes of it.
func (s *shard) change(tenant string, buckets []Bucket, now int64, to func(k int, rule *rule, debt int64) int64) []LimitState {
	var entries [MaxLimits]*entry
	var before, after debtArray
	s.load(tenant, buckets, &entries, &before, now)
	k := 0
	for i := range buckets {
		rules := buckets[i].Limits.rules
		first, touched := k, false
		for j := range rules {
			after[k] = to(k, &rules[j], before[k])
			touched = touched || after[k] != before[k]
			k++
		}
		if touched {
			s.save(tenant, &buckets[i], entries[i], after[first:k], now)
		}
	}
	return changed(buckets, &before, &after)
}
