package policydiff

import (
	"maps"
	"slices"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// documentPrefix begins the id of a document, which names an operation rule as well.
const documentPrefix = "sha256:"

// Operations are the spellings of all operation rules that a tenant in a tier has budgets of, those of each user included.
func Operations(p *tiers.Policy, tier, tenant string) []string {
	rules, exception := p.Tiers[tier], p.Tenants[tenant]
	spellings := slices.AppendSeq(slices.Collect(maps.Keys(rules.Operations)), maps.Keys(exception.Operations))
	if rules.Users != nil {
		spellings = slices.AppendSeq(spellings, maps.Keys(rules.Users.Operations))
	}
	if exception.Users != nil {
		spellings = slices.AppendSeq(spellings, maps.Keys(exception.Users.Operations))
	}
	slices.Sort(spellings)
	return slices.Compact(spellings)
}

// Selecting is an operation that falls under a rule, or selects a root field. Empty is none.
func Selecting(operation string) tiers.Selection {
	switch {
	case strings.HasPrefix(operation, documentPrefix):
		return tiers.Selection{Document: operation}
	case operation != "":
		return tiers.Selection{Fields: []string{operation}}
	}
	return tiers.Selection{}
}

// Buckets returns budgets and those that the operations add, each once.
func Buckets(own []bucket.Bucket, operations []string, rulesFor func(operation string) tiers.Rules) []bucket.Bucket {
	return added(own, operations, func(operation string) []bucket.Bucket { return rulesFor(operation).Buckets })
}

// Backstop returns the budgets over all tenants, those of single operations included.
func Backstop(p *tiers.Snapshot, written *tiers.Policy) []bucket.Bucket {
	if written.Backstop == nil {
		return nil
	}
	of := func(operation string) []bucket.Bucket {
		return p.Rules(tiers.Subject{Tenant: anybody}, Selecting(operation)).Backstop
	}
	return added(of(""), sorted(written.Backstop.Operations), of)
}

// added returns buckets and those that the operations add, each once.
func added(own []bucket.Bucket, operations []string, of func(operation string) []bucket.Bucket) []bucket.Bucket {
	all := slices.Clone(own)
	for _, spelling := range operations {
		for _, b := range of(spelling) {
			if !slices.ContainsFunc(all, func(have bucket.Bucket) bool { return have.Owner == b.Owner }) {
				all = append(all, b)
			}
		}
	}
	return all
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
