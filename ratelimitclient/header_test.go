package ratelimitclient_test

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

func TestRetryAfterReadsSecondsAndDates(t *testing.T) {
	t.Parallel()
	const date = "Sat, 21 Nov 2026 12:00:00 GMT"
	for _, test := range []struct {
		name, value string
		want        time.Duration
		ok          bool
	}{
		{"seconds", "120", 2 * time.Minute, true},
		{"zero", "0", 0, true},
		{"spaces around", " 3 ", 3 * time.Second, true},
		{"the longest duration", "9223372036", 9223372036 * time.Second, true},
		{"more seconds than a duration holds", "9223372037", math.MaxInt64, true},
		{"more digits than an integer holds", "99999999999999999999999999", math.MaxInt64, true},
		{"a date", "Sat, 21 Nov 2026 12:01:30 GMT", 90 * time.Second, true},
		{"a date of RFC 850", "Saturday, 21-Nov-26 12:00:05 GMT", 5 * time.Second, true},
		{"a date in the past", "Sat, 21 Nov 2026 11:00:00 GMT", 0, true},
		{"a sign", "-1", 0, false},
		{"a plus sign", "+1", 0, false},
		{"a fraction", "1.5", 0, false},
		{"digits of another script", "١", 0, false},
		{"words", "soon", 0, false},
		{"nothing", "", 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, ok := ratelimitclient.RetryAfter(http.Header{"Retry-After": {test.value}, "Date": {date}})
			require.Equal(t, test.ok, ok)
			require.Equal(t, test.want, got)
		})
	}
	_, ok := ratelimitclient.RetryAfter(nil)
	require.False(t, ok)
}

func TestRetryAfterWithoutDateUsesTheClockOfThisMachine(t *testing.T) {
	t.Parallel()
	const wait = time.Hour
	at := time.Now().Add(wait).UTC().Format(http.TimeFormat)
	got, ok := ratelimitclient.RetryAfter(http.Header{"Retry-After": {at}})
	require.True(t, ok)
	require.InDelta(t, wait, got, float64(10*time.Minute))
}
