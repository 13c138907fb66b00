package session_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
)

func TestATermEndsByTheClockThatItIsGiven(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 21, 40, 0, 0, time.UTC)
	for _, c := range []struct {
		term session.Term
		want time.Time
	}{
		{session.Term{For: 2 * time.Hour}, now.Add(2 * time.Hour)},
		{session.Term{Forever: true}, time.Time{}},
		{session.Term{Until: "22:00"}, time.Date(2026, 11, 22, 22, 0, 0, 0, time.UTC)},
		{session.Term{Until: "06:00"}, time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)},
		{session.Term{Until: "21:40"}, time.Date(2026, 11, 23, 21, 40, 0, 0, time.UTC)},
		{session.Term{Until: "2026-11-23T01:00:00+02:00"}, time.Date(2026, 11, 22, 23, 0, 0, 0, time.UTC)},
	} {
		end, err := c.term.End(now)
		require.NoError(t, err, "%+v", c.term)
		require.True(t, c.want.Equal(end), "%+v ends at %v", c.term, end)
	}
	for _, wrong := range []session.Term{
		{},
		{For: time.Hour, Until: "06:00"},
		{For: time.Hour, Forever: true},
		{For: -time.Hour},
		{For: 11 * 365 * 24 * time.Hour},
		{Until: "tomorrow"},
		{Until: "25:00"},
		{Until: "2026-11-22 23:00"},
		{Until: "2026-11-22T21:40:00Z"},
		{Until: "2099-01-01T00:00:00Z"},
	} {
		_, err := wrong.End(now)
		require.Error(t, err, "%+v", wrong)
	}
}
