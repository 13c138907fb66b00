package bucket_test

import (
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// drawRule draws a limit that compiles, with the edges of what does well represented.
func drawRule(t *rapid.T, label string) (*state.Rule, bucket.Limit) {
	interesting := rapid.SampledFrom([]bucket.Limit{
		{Capacity: 1, Refill: 1, Period: 24 * time.Hour},
		{Capacity: 1_000_000_000, Refill: 1_000_000_000, Period: 24 * time.Hour},
		{Capacity: 1 << 52, Refill: 1<<53 - 1, Period: time.Millisecond},
		{Capacity: 1 << 52, Refill: 1 << 52, Period: time.Millisecond},
		{Capacity: 104_729, Refill: 7919, Period: 15_485_863 * time.Millisecond},
		{Capacity: 4_503_599, Refill: 1, Period: 1_000 * time.Millisecond},
		{Capacity: 14_241, Refill: 14_241, Period: maxPeriod},
		{Capacity: 1, Refill: 1, Period: time.Millisecond},
	})
	random := rapid.Custom(func(t *rapid.T) bucket.Limit {
		return bucket.Limit{
			Capacity: rapid.Int64Range(1, 1<<40).Draw(t, "capacity"),
			Refill:   rapid.Int64Range(1, 1<<53-1).Draw(t, "refill"),
			Period:   time.Duration(rapid.Int64Range(1, maxPeriod.Milliseconds()).Draw(t, "ms")) * time.Millisecond,
		}
	})
	limit := rapid.OneOf(interesting, random).Filter(func(l bucket.Limit) bool {
		l.Name = "x"
		_, err := bucket.Compile(l)
		return err == nil
	}).Draw(t, label)
	limit.Name = "x"
	limits, err := bucket.Compile(limit)
	require.NoError(t, err)
	return bucket.RuleOf(limits), limit
}

// drawDebt draws a debt between nothing and the deepest overdraft.
func drawDebt(t *rapid.T, rule *state.Rule, capacity int64) int64 {
	return rapid.Int64Range(0, 2*capacity*rule.P).Draw(t, "debt")
}

func integer(n int64) *big.Int { return big.NewInt(n) }

func clampBelow(n *big.Int) *big.Int {
	if n.Sign() < 0 {
		return new(big.Int)
	}
	return n
}

func smallest(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// ceilQuotient is ⌈a / b⌉ for a ≥ 0.
func ceilQuotient(a, b *big.Int) *big.Int {
	q, m := new(big.Int).DivMod(a, b, new(big.Int))
	if m.Sign() > 0 {
		q.Add(q, integer(1))
	}
	return q
}

func product(a, b int64) *big.Int { return new(big.Int).Mul(integer(a), integer(b)) }

func TestArithmeticIsThatOfUnboundedIntegers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rule, limit := drawRule(t, "limit")
		r, p, c := rule.R, rule.P, limit.Capacity
		debt := drawDebt(t, rule, c)
		elapsed := rapid.Int64Range(-1000, 20*366*24*3600*1000).Draw(t, "elapsed")
		amount := rapid.Int64Range(0, c).Draw(t, "amount")
		full := product(c, p)

		require.Equal(t, product(r, limit.Period.Milliseconds()).String(), product(limit.Refill, p).String(),
			"r / p is the refill")
		decayed := clampBelow(new(big.Int).Sub(integer(debt), product(r, max(elapsed, 0))))
		require.Equal(t, decayed.Int64(), rule.Decay(debt, elapsed), "decay")
		over := new(big.Int).Sub(integer(debt), new(big.Int).Sub(full, product(amount, p)))
		require.Equal(t, over.Int64(), rule.Over(debt, amount), "over")
		remaining := new(big.Int).Div(clampBelow(new(big.Int).Sub(full, integer(debt))), integer(p))
		require.Equal(t, remaining.Int64(), rule.Remaining(debt), "remaining")
		require.Equal(t, ceilQuotient(integer(debt), integer(r)).Int64(), rule.Wait(debt), "wait")
		require.Zero(t, rule.Decay(debt, rule.Wait(debt)), "the wait until full is long enough")
		if wait := rule.Wait(debt); wait > 0 {
			require.Positive(t, rule.Decay(debt, wait-1), "and no longer than needed")
		}
	})
}

func TestSettlingIsThatOfUnboundedIntegers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rule, limit := drawRule(t, "limit")
		r, p, c := rule.R, rule.P, limit.Capacity
		debt := drawDebt(t, rule, c)
		charged := rapid.Int64Range(0, c).Draw(t, "charged")
		actual := rapid.OneOf(rapid.Int64Range(0, c), rapid.Int64Range(0, 1<<62)).Draw(t, "actual")
		elapsed := rapid.OneOf(rapid.Int64Range(-10, 100), rapid.Int64Range(0, 1<<40)).Draw(t, "elapsed")

		want := integer(debt)
		if actual < charged {
			owed := clampBelow(new(big.Int).Sub(product(charged, p), product(r, max(elapsed, 0))))
			want = clampBelow(new(big.Int).Sub(want, smallest(owed, product(charged-actual, p))))
		} else {
			// Whole tokens, as many as fit above twice the capacity.
			room := new(big.Int).Div(new(big.Int).Sub(product(2*c, p), want), integer(p))
			want.Add(want, new(big.Int).Mul(smallest(clampBelow(room), integer(actual-charged)), integer(p)))
		}
		require.Equal(t, want.Int64(), rule.Settle(state.Spent{Debt: debt}, charged, actual, 0, elapsed).Debt)
	})
}

func TestAChangedPolicyKeepsWhatWasSpent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		old, oldLimit := drawRule(t, "old")
		rule, _ := drawRule(t, "new")
		debt := drawDebt(t, old, oldLimit.Capacity)
		got := rule.Convert(debt, old.P)
		most := integer(1 << 53)
		exact := new(big.Int).Mul(integer(debt), integer(rule.P))
		want := smallest(ceilQuotient(exact, integer(old.P)), most)
		if old.P == rule.P || product(old.P, rule.P).Cmp(integer(1<<53)) < 0 {
			require.Equal(t, want.Int64(), got, "exact, rounded up")
			return
		}
		// Where the product is not exact, a begun token counts as a whole one.
		whole := new(big.Int).Mul(ceilQuotient(integer(debt), integer(old.P)), integer(rule.P))
		require.Equal(t, smallest(whole, most).Int64(), got)
		require.GreaterOrEqual(t, got, want.Int64(), "never less than was spent")
	})
}
