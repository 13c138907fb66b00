package webhook_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook"
)

var start = time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)

func TestAMessageThatAlwaysFailsIsTriedTenTimesInThreeDaysAndThenDead(t *testing.T) {
	d := webhook.Begin(message, start)
	now := start
	var waited []time.Duration
	for d.State == webhook.Waiting {
		waited = append(waited, d.Due.Sub(now))
		now = d.Due
		d = d.After(webhook.Result{Outcome: webhook.Failed, Reason: webhook.ReasonTimeout}, now, 0)
	}
	require.Equal(t, []time.Duration{
		0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}, waited)
	require.Equal(t, webhook.Dead, d.State)
	require.Equal(t, webhook.MaxAttempts, d.Attempts)
	require.Equal(t, webhook.ReasonTimeout, d.Reason)
	require.Equal(t, d, d.After(webhook.Result{Outcome: webhook.Delivered}, now, 0), "what is dead stays so")
	require.Equal(t, webhook.Begin(message, now), d.Replay(now), "a replay has the same id, and all its attempts")
}

func TestWhatAnAttemptCameToDecidesWhetherThereIsAnother(t *testing.T) {
	for outcome, want := range map[webhook.Outcome]webhook.State{
		webhook.Delivered: webhook.Done, webhook.Failed: webhook.Waiting, webhook.Slow: webhook.Waiting, webhook.Gone: webhook.Dead, webhook.Refused: webhook.Dead,
	} {
		require.Equal(t, want, webhook.Begin(message, start).After(webhook.Result{Outcome: outcome}, start, 0).State, outcome)
	}
}

func TestAnEndpointIsLeftAloneForAsLongAsItAsksButNoLongerThanADayAndAFifth(t *testing.T) {
	after := func(r webhook.Result, jitter float64) time.Duration {
		return webhook.Begin(message, start).After(r, start, jitter).Due.Sub(start)
	}
	require.Equal(t, time.Hour, after(webhook.Result{Outcome: webhook.Failed, RetryAfter: time.Hour}, 0))
	require.Equal(t, 5*time.Second, after(webhook.Result{Outcome: webhook.Failed, RetryAfter: time.Second}, 0), "never sooner than the schedule")
	require.Equal(t, time.Minute, after(webhook.Result{Outcome: webhook.Slow}, 0))
	require.Equal(t, 24*time.Hour, after(webhook.Result{Outcome: webhook.Slow, RetryAfter: math.MaxInt64}, 0))
	require.Equal(t, 24*time.Hour*6/5, after(webhook.Result{Outcome: webhook.Slow, RetryAfter: math.MaxInt64}, 1))
	require.Equal(t, 5500*time.Millisecond, after(webhook.Result{Outcome: webhook.Failed}, 0.5))
	for _, wrong := range []float64{-1, 2, math.NaN(), math.Inf(1)} {
		require.Equal(t, 5*time.Second, after(webhook.Result{Outcome: webhook.Failed}, wrong))
	}
}
