package bucket

import (
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// takeDirect does a take that is not a fast one, of a tenant without override records: on the states as they are stored, by what
// decides on those that a script is sent. It reports whether it did; if not, it changed nothing but the room for the answer.
func (s *shard) takeDirect(tenant tenantKey, take *Take, result *Result, now int64) bool {
	if s.direct == nil {
		s.direct = new(state.Direct)
	}
	d, judged := s.direct, true
	d.Begin(now)
	var record entryKey
	if take.Claim != nil {
		address := recordAddress(take.Claim)
		record = s.keyOf(tenant, &address)
		_, e := s.find(&record, now)
		var err error
		if judged, err = d.Claim(claimOf(take.Claim, take.Buckets), s.valueOf(e)); err != nil {
			return false
		}
	}
	if !s.load(tenant, take.Buckets, take.Amounts, now) {
		return false
	}
	d.Candidate()
	tries, trial := take.Candidate != nil && len(take.Candidate.Buckets) > 0, tenantKey{}
	if tries {
		trial = s.candidate(tenant, take.Candidate.ID)
		if !s.load(trial, take.Candidate.Buckets, take.Amounts, now) {
			return false
		}
	}
	outcome, tail := d.Decide()
	if judged {
		s.save(tenant, take.Buckets, 0, now)
		if tries {
			s.save(trial, take.Candidate.Buckets, len(take.Buckets), now)
		}
	}
	if value, ends, ok := d.Record(s.fresh[:0]); ok {
		s.keep(&record, value, ends, now)
	}
	if take.Usage != nil && outcome == state.Admitted {
		s.countTake(tenant, take, now)
	}
	s.makeRoom()
	if judged && tries {
		result.Candidate = s.tried(take, now)
	}
	return result.direct(take, d, outcome, tail, now)
}

// load adds the owners of a policy to the direct take. It returns false if something is stored that cannot be read.
func (s *shard) load(tenant tenantKey, buckets []Bucket, amounts Amounts, now int64) bool {
	for i := range buckets {
		b := &buckets[i]
		key := s.bucketKey(tenant, &b.Owner)
		_, e := s.find(&key, now)
		if err := s.direct.Owner(b.Limits.compiled, s.valueOf(e)); err != nil {
			return false
		}
		for j := range b.Limits.rules {
			s.direct.Ask(j, b.asked(amounts, b.Limits.rules[j].limit.Unit))
		}
	}
	return true
}

// save keeps the owners of a policy, of which the first one has a number in the direct take.
func (s *shard) save(tenant tenantKey, buckets []Bucket, first int, now int64) {
	for i := range buckets {
		if value, expires, ok := s.direct.Write(first+i, s.fresh[:0]); ok {
			key := s.bucketKey(tenant, &buckets[i].Owner)
			s.keep(&key, value, expires, now)
		}
	}
}

// keep keeps a value, which is made in the room for fresh ones, under a key, or nothing.
func (s *shard) keep(key *entryKey, value []byte, expires, now int64) {
	if value != nil {
		s.fresh = value
	}
	s.write(key, &state.Write{Value: own(key, value), Expiry: expires}, now)
}

// own returns a value that the shard may keep: where no slab has room for it a copy.
func own(key *entryKey, value []byte) []byte {
	if _, whole := slabFor(key, len(value)); !whole {
		return slices.Clone(value)
	}
	return value
}

// tried is what the direct take came to under the candidate.
func (s *shard) tried(take *Take, now int64) *CandidateResult {
	var t trial
	outcome, short := s.direct.Side(true)
	t.verdict, _ = verdictOf(outcome)
	t.short = short
	k := 0
	for i := range take.Candidate.Buckets {
		k += s.direct.Spent(len(take.Buckets)+i, t.spends[k:])
	}
	return t.result(take.Candidate.Buckets, take.Amounts, now)
}

// direct completes the result of a direct take, as readTake does that of a reply.
func (r *Result) direct(take *Take, d *state.Direct, outcome state.Outcome, tail string, now int64) (ok bool) {
	var spends spentArray
	k := 0
	for i := range take.Buckets {
		k += d.Spent(i, spends[k:])
	}
	if r.Verdict, ok = verdictOf(outcome); ok && outcome <= state.Never {
		_, short := d.Side(false)
		r.judged(take, &spends, short, now)
		return true
	}
	r.fill(take, &spends, now, state.Shortfall{}, false)
	return r.keyed(take, outcome, tail)
}
