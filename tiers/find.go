package tiers

// find returns what holds for a subject, and the record if that is its own.
func (s *Snapshot) find(subject *Subject, record *Record) (*ruleSet, *Record) {
	place, listed := s.family.listed.find(subject.Tenant)
	carried := s.tiers[subject.Tier]
	switch {
	case !listed && record != nil:
		return s.recorded(record, subject.Tier, carried), record
	case !listed && carried != nil:
		return carried, nil
	case !listed:
		return s.fallback, nil
	case carried == nil:
		if set := s.exceptions[place].assigned.Load(); set != nil {
			return set, nil
		}
		return s.exception(place, s.family.listed.kinds[place].tier), nil
	default:
		return s.exception(place, subject.Tier), nil
	}
}

// Lists returns whether the policy itself says something about a tenant: then it has no use for a [Record].
func (s *Snapshot) Lists(tenant string) bool {
	_, listed := s.family.listed.find(tenant)
	return listed
}

// HasTier returns whether the policy has a tier of this name.
func (s *Snapshot) HasTier(name string) bool {
	return s.tiers[name] != nil
}
