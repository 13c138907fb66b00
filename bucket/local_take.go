package bucket

// Take judges a take that the store cannot answer, by this instance's shares of the limits that fail local or bounded;
// others are not judged. late says that the call has not left this process, which says nothing of the store. The verdict
// is [Admitted], [Limited], [Blocked] where the last answer of the store was, or [Never] where the share is too small to
// wait for: there it is no verdict on the limit itself. The states of the limits show the limits themselves, with what is
// left of the share. Claims and candidates are ignored, and override records hold as the last answer of the store has
// shown them.
//
// A take that may have been charged by the store nevertheless is charged here once more.
func (l *local) Take(take *Take, late bool) Result {
	j := localTake{local: l, shard: l.shard(take.Tenant), take: take, now: l.now(), instances: l.Instances()}
	if late {
		j.since, j.absence = l.late(j.now)
	} else {
		j.since, j.absence = l.missed(j.now)
	}
	j.shard.mu.Lock()
	defer j.shard.mu.Unlock()
	if by := j.shard.blocking(take, j.now); by != nil {
		return Result{Verdict: Blocked, blockedBy: by, now: j.now}
	}
	defer j.end()
	if !j.gather() {
		return Result{Verdict: Never, now: j.now}
	}
	return j.judge()
}

// Blocked returns the answer to a take that a record blocks, as far as the store has said so. It returns false if none
// is known to.
func (l *local) Blocked(take *Take) (Result, bool) {
	if l.blocking.Load() == 0 {
		return Result{}, false
	}
	s, now := l.shard(take.Tenant), l.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	by := s.blocking(take, now)
	return Result{Verdict: Blocked, blockedBy: by, now: now}, by != nil
}

// Instances returns how many instances share the store, as far as it is known: zero if nothing is.
func (l *local) Instances() int {
	if l.config.Instances > 0 {
		return l.config.Instances
	}
	return int(l.beat.instances.Load())
}

// localTake is one take that is judged here.
type localTake struct {
	local *local
	shard *localShard
	take  *Take
	now   int64
	// The store is away since a time, which begins an absence with a number.
	since, absence int64
	// instances is how many there are, zero if nobody knows.
	instances int
	// owners are those that have limits which are judged here, and buckets their shares.
	owners  []*localOwner
	buckets []Bucket
	spends  spentArray
}

// end lets go of the owners: from now on they may be forgotten.
func (j *localTake) end() {
	for _, o := range j.owners {
		o.taking = false
	}
}

// gather finds the owners and what they have spent, and charges nothing. It returns false if a limit refuses of which
// there is no share, or no room to count it. An owner that was found is not forgotten while the take lasts: it is the one
// that was used longest ago if it is new.
func (j *localTake) gather() bool {
	l, k := j.local, 0
	for i := range j.take.Buckets {
		b := &j.take.Buckets[i]
		if !b.Limits.shared {
			continue
		}
		o := j.shard.judged(l, localKey{j.take.Tenant, b.Owner}, b.Limits, j.now)
		if o == nil || o.taking {
			return false
		}
		o.taking = true
		j.owners = append(j.owners, o)
		if o.policy != b.Limits {
			o.govern(l, b.Limits, o.under(b.Limits, j.now))
		}
		share := l.share(o.limits, j.instances)
		if share.lacks(b, j.take.Amounts) {
			return false
		}
		o.begin(j, share)
		rules := share.limits.rules
		o.ledger.Load(share.limits.compiled.All, j.spends[k:k+len(rules)], j.now)
		k += len(rules)
		j.buckets = append(j.buckets, Bucket{Owner: b.Owner, Limits: share.limits, Amounts: b.Amounts})
	}
	return true
}

// judge charges all owners or none.
func (j *localTake) judge() Result {
	verdict, short := judge(j.buckets, &j.spends, j.take.Amounts, j.now)
	result := Result{Verdict: verdict}
	k := 0
	for i, o := range j.owners {
		rules, changed := o.share.limits.rules, uint64(0)
		o.used = j.now
		for n := range rules {
			asked := j.buckets[i].asked(j.take.Amounts, rules[n].limit.Unit)
			if verdict != Admitted || !rules[n].Take(&j.spends[k+n], &short, k+n, asked, j.now) {
				continue
			}
			changed |= 1 << n
			if !o.standsIn() {
				o.spend(o.share.of[n], j.spends[k+n], short.Of(k+n, asked), j.now)
			}
		}
		if verdict == Admitted {
			o.ledger.Store(o.share.limits.compiled, j.spends[k:k+len(rules)], changed, j.now)
		}
		if len(o.taken) > 0 && !o.owes {
			j.shard.owe(j.local, o)
		}
		k += len(rules)
	}
	if verdict == Admitted {
		j.shard.admit(j.take)
	}
	result.fill(&Take{Buckets: j.buckets, Amounts: j.take.Amounts, States: j.take.States}, &j.spends, j.now, short, true)
	k = 0
	for _, o := range j.owners {
		for _, n := range o.share.of {
			rule := &o.limits.rules[n]
			shown := &result.Limits[k]
			shown.Limit, shown.Overridden = rule.limit, rule.overridden
			// Of a multiple more may be left than the whole limit.
			shown.Remaining = min(shown.Remaining, rule.Capacity)
			k++
		}
	}
	return result
}
