package tiers

import (
	"cmp"
	"encoding/json"
	"iter"
	"net/textproto"
	"slices"
	"strconv"
)

// String names where a request has the value, whatever a policy calls it: header:X-Lang, claim:plan, query:region, path:2 or
// variable:input.shop. It is empty for the zero value.
func (p Parameter) String() string {
	switch {
	case p.Header != "":
		return "header:" + textproto.CanonicalMIMEHeaderKey(p.Header)
	case p.Claim != "":
		return "claim:" + p.Claim
	case p.Query != "":
		return "query:" + p.Query
	case p.Path != 0:
		return "path:" + strconv.FormatInt(p.Path, 10)
	case p.Variable != "":
		return "variable:" + p.Variable
	default:
		return ""
	}
}

// Parameters returns what the policy names of requests, each once and sorted by [Parameter.String]. The slice is shared and must not be changed.
func (s *Snapshot) Parameters() []Parameter {
	return s.family.carried
}

// distinct sorts parameters and leaves each once.
func distinct(all []Parameter) []Parameter {
	slices.SortFunc(all, func(a, b Parameter) int { return cmp.Compare(a.String(), b.String()) })
	return slices.CompactFunc(all, func(a, b Parameter) bool { return a.String() == b.String() })
}

// Carried yields each parameter that the policy names with the value that a request has, as custom limits look at it: empty for one that it does not
// have, or that no key could have. Claims are those of the subject.
func (r *Rules) Carried(subject Subject, from Parameters) iter.Seq2[Parameter, string] {
	return func(yield func(Parameter, string) bool) {
		if r.from == nil {
			return
		}
		v := keyValues{subject: subject, from: from}
		for _, p := range r.from.Parameters() {
			value, ok := v.look(p)
			if !ok {
				value = ""
			}
			if !yield(p, value) {
				return
			}
		}
	}
}

// KeyValues yields each value that stands for a parameter in a key of a custom limit: in those of the policy and of the tenants that it lists, or of a record that is not nil. A value may come several times.
func (s *Snapshot) KeyValues(record *Record) iter.Seq2[Parameter, string] {
	return func(yield func(Parameter, string) bool) {
		each := func(custom map[string]CustomRule) bool {
			for spelled := range custom {
				key, err := ParseKey(spelled)
				if err != nil {
					continue
				}
				for _, part := range key.parts {
					p, named := s.family.policy.Parameters[part.name]
					if named && !yield(p, part.value) {
						return false
					}
				}
			}
			return true
		}
		if record != nil {
			_ = each(record.custom())
			return
		}
		if !each(s.family.policy.Custom) {
			return
		}
		for i := range s.family.listed.kinds {
			if x := s.family.listed.kinds[i].exception(); !each(x.Custom) {
				return
			}
		}
	}
}

// custom returns the custom limits of the record.
func (r *Record) custom() map[string]CustomRule {
	if r.only {
		return nil
	}
	var d RecordDocument
	// It was written by ParseRecord.
	_ = json.Unmarshal([]byte(r.text), &d)
	return d.Custom
}
