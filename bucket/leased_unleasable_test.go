package bucket_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

func TestOfALimitThatAModeCallsUnleasableNothingIsLeasedAndOfAnyOtherSomethingIs(t *testing.T) {
	t.Parallel()
	minute := func(capacity int64) bucket.Limit {
		return bucket.Limit{Name: "minute", Capacity: capacity, Refill: capacity, Period: time.Minute}
	}
	soft, off, window := minute(5000), minute(5), minute(42)
	soft.Soft, off.Mode, window.Window.Kind = true, bucket.Off, bucket.FixedWindow
	const small = "a capacity of 42 is too small to be worth dividing; 43, or lease: always, fits"
	const endless = "a soft limit has no end that could be divided; mode: shadow instead of soft fits"
	for name, c := range map[string]struct {
		mode  bucket.LeaseMode
		limit bucket.Limit
		why   string
	}{
		"a large one":                      {bucket.LeaseAuto, minute(5000), ""},
		"the smallest one that is divided": {bucket.LeaseAuto, minute(43), ""},
		"one below it":                     {bucket.LeaseAuto, minute(42), small},
		"a small one that is always":       {bucket.LeaseAlways, minute(42), ""},
		"a small window":                   {bucket.LeaseAuto, window, ""},
		"a soft one":                       {bucket.LeaseAuto, soft, endless},
		"a soft one that is always":        {bucket.LeaseAlways, soft, endless},
		"one that is off":                  {bucket.LeaseAuto, off, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.why, c.mode.Unleasable(&c.limit))
			require.Empty(t, bucket.LeaseOff.Unleasable(&c.limit), "nobody expects anything")
			synctest.Test(t, func(t *testing.T) {
				beside := minute(6000)
				beside.Name = "beside"
				s := newLeasedScene(t, c.limit, beside)
				take := s.of(1)
				take.Lease = c.mode
				leased := 0
				for range 200 {
					_, err := s.leased.Take(t.Context(), take)
					require.NoError(t, err)
					leased = max(leased, s.leased.Stats().Tenants)
					time.Sleep(10 * time.Millisecond) //nolint:forbidigo // The clock of the bubble is not the real one: this waits for nothing.
				}
				require.Equal(t, c.why == "", leased > 0)
			})
		})
	}
}
