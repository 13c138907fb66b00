package tiers

// Hide is what clients are not told, in answers, headers and the texts of errors. What they need to act
// always stands there: the code of a refusal, the name of the limit, and when to come back. The zero value
// hides nothing.
type Hide struct {
	// Cost hides what operations cost, could cost, and came to, and the maximum cost.
	Cost bool `yaml:"cost,omitempty" json:"cost,omitempty"`
	// Limits hides the capacities of limits, the maximum cost, and what limits of shape allow.
	Limits bool `yaml:"limits,omitempty" json:"limits,omitempty"`
	// Remaining hides what is left of limits, and when they are full again.
	Remaining bool `yaml:"remaining,omitempty" json:"remaining,omitempty"`
	// Owners hides the names of teams, users and operation rules. Several rules are numbered instead.
	Owners bool `yaml:"owners,omitempty" json:"owners,omitempty"`
}

// Or returns what either hides.
func (h Hide) Or(other Hide) Hide {
	return Hide{
		Cost: h.Cost || other.Cost, Limits: h.Limits || other.Limits,
		Remaining: h.Remaining || other.Remaining, Owners: h.Owners || other.Owners,
	}
}

// hidden returns what a part of the policy hides.
func hidden(h *Hide) Hide {
	if h == nil {
		return Hide{}
	}
	return *h
}
