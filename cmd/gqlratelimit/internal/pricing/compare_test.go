package pricing_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/pricing"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
)

func TestARiseIsTheDifferenceAsAShareOfTheOldPrice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before, after int64
		want          float64
	}{
		{100, 110, 0.1},
		{100, 100, 0},
		{100, 50, -0.5},
		{0, 0, 0},
		{0, 1, math.Inf(1)},
		{1, 0, -1},
		{cost.MaxPoints, cost.MaxPoints, 0},
	} {
		change := pricing.Change{Old: pricing.Result{Points: c.before}, New: pricing.Result{Points: c.after}}
		require.Equal(t, c.want, change.Rise())
	}
}

func TestARiseAsLargeAsAllowedIsAllowed(t *testing.T) {
	t.Parallel()
	change := pricing.Change{Old: pricing.Result{Points: 100}, New: pricing.Result{Points: 110}}
	require.False(t, change.Exceeds(0.1))
	change.New.Points = 111
	require.True(t, change.Exceeds(0.1))
}

func TestAnOperationBreaksIfOnlyTheOldSchemaAcceptsIt(t *testing.T) {
	t.Parallel()
	fine := pricing.Result{Points: 1}
	invalid := pricing.Result{Points: 1, Invalid: true}
	fatal := pricing.Result{Invalid: true, Fatal: true}
	require.True(t, pricing.Change{Old: fine, New: invalid}.Broken())
	require.True(t, pricing.Change{Old: fine, New: fatal}.Broken())
	require.True(t, pricing.Change{Old: invalid, New: fatal}.Broken(), "it has no price any more")
	require.False(t, pricing.Change{Old: invalid, New: invalid}.Broken())
	require.False(t, pricing.Change{Old: invalid, New: fine}.Broken())
	require.False(t, pricing.Change{Old: fatal, New: fatal}.Broken())
	require.Zero(t, pricing.Change{Old: fatal, New: fine}.Rise())
}

func TestAnOperationBreaksIfOnlyTheNewSchemaMakesAServerRefuseIt(t *testing.T) {
	t.Parallel()
	fine := pricing.Result{Points: 1}
	refused := pricing.Result{Points: 1, Problems: []*cli.FileError{{Message: "a server refuses this"}}}
	require.True(t, pricing.Change{Old: fine, New: refused}.Broken())
	require.False(t, pricing.Change{Old: refused, New: refused}.Broken())
	require.False(t, pricing.Change{Old: refused, New: fine}.Broken())
}

func TestCausesAreTheCallsThatAddMore(t *testing.T) {
	t.Parallel()
	entry := func(points float64, path ...string) cost.Entry { return cost.Entry{Path: path, Type: points} }
	change := pricing.Change{
		Old: pricing.Result{Breakdown: cost.Breakdown{Entries: []cost.Entry{entry(1, "a"), entry(5, "b"), entry(3, "c"), entry(2, "gone")}}},
		New: pricing.Result{Breakdown: cost.Breakdown{Entries: []cost.Entry{entry(2, "a"), entry(4, "b"), entry(3, "c"), entry(9, "d", "e")}}},
	}
	require.Equal(t, []pricing.Cause{
		{Path: "d.e", Coordinates: []string{""}, New: 9}, {Path: "a", Coordinates: []string{""}, Old: 1, New: 2},
	}, change.Causes())
}

// An abstract type costs the maximum of each component, which may be those of two object types.
func TestAPathIsOneCauseWhateverTypesAreCalledThere(t *testing.T) {
	t.Parallel()
	entry := func(coordinate string, typ, field float64) cost.Entry {
		return cost.Entry{Path: []string{"node", "owner"}, Coordinate: coordinate, Type: typ, Field: field}
	}
	change := pricing.Change{
		Old: pricing.Result{Breakdown: cost.Breakdown{Entries: []cost.Entry{entry("A.owner", 50, 0)}}},
		New: pricing.Result{Breakdown: cost.Breakdown{Entries: []cost.Entry{entry("B.owner", 62.5, 0), entry("A.owner", 0, 50)}}},
	}
	require.Equal(t, []pricing.Cause{{Path: "node.owner", Coordinates: []string{"A.owner", "B.owner"}, Old: 50, New: 112.5}}, change.Causes())
}
