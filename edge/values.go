package edge

import (
	"math"

	"github.com/99designs/gqlgen/graphql"

	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/jsonvalue"
	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/occupancy"
)

// values bounds the values of JSON that come with operations: those of one, and what all hold that are under way. It is safe
// for concurrent use.
type values struct {
	// most is how many the variables of an operation have, and mostExtensions how many its extensions.
	most, mostExtensions int
	held                 *occupancy.Room
}

// newValues returns what the configuration bounds. Defaults have been filled in.
func newValues(cfg *Config) *values {
	return &values{
		most: bounded(cfg.Request.MaxValues), mostExtensions: bounded(cfg.Documents.MaxExtensions),
		held: occupancy.New(cfg.Request.Values, cfg.Address.Values),
	}
}

// admit refuses an operation whose variables or extensions have too many values, and takes room for those of a request of HTTP
// until it ends.
func (v *values) admit(a *arrival, params *graphql.RawParams) *refusal {
	var extensions, all jsonvalue.Tally
	if extensions.Members(params.Extensions, v.mostExtensions); extensions.Values > v.mostExtensions {
		return tooManyExtensions(extensions.Values, v.mostExtensions)
	}
	if all.Members(params.Variables, v.most); all.Values > v.most {
		return tooManyValues(all.Values, v.most)
	}
	if a.socket != nil {
		return nil // which counts what runs
	}
	all.Members(params.Extensions, math.MaxInt)
	if refusal := v.hold(a, all.Held()); refusal != nil {
		return refusal
	}
	a.values.Add(int64(all.Held()))
	return nil
}

// hold takes room for so many values, and letGo gives it back.
func (v *values) hold(a *arrival, n int) *refusal {
	return unlessEntered(v.held.Enter(a.client, a.site, n),
		"the operations that are under way have too many values in their variables",
		"the operations of this address that are under way have too many values in their variables: wait for their answers")
}

func (v *values) letGo(a *arrival, n int) { v.held.Leave(a.client, a.site, n) }

// ends gives back the room that a request of HTTP took.
func (v *values) ends(a *arrival) {
	if n := a.values.Swap(0); n > 0 {
		v.letGo(a, int(n))
	}
}
