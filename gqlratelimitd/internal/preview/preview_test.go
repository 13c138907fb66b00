package preview_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/preview"
	"github.com/gqlgen-ratelimit/ratelimit/internal/previewreport"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

const everybody = 1<<64 - 1

func perMinute(t *testing.T, points int) *tiers.Snapshot {
	t.Helper()
	return compiled(t, fmt.Sprintf("version: 1\ndefault: free\ntiers:\n  free: {limits: {minute: {capacity: %d, per: minute}}}\n", points))
}

func compiled(t *testing.T, document string) *tiers.Snapshot {
	t.Helper()
	s, err := tiers.Load([]byte(document), 1)
	require.NoError(t, err)
	return s
}

func each(chunks ...digest.Chunk) iter.Seq2[digest.Chunk, error] {
	return func(yield func(digest.Chunk, error) bool) {
		for _, c := range chunks {
			if !yield(c, nil) {
				return
			}
		}
	}
}

func chunk(records ...digest.Record) digest.Chunk {
	return digest.Chunk{Version: 1, From: noon, To: noon, Below: everybody, Records: records}
}

func TestWhatOnlyTheNewPolicyRefusesIsNewlyRefused(t *testing.T) {
	t.Parallel()
	report, err := preview.Run(t.Context(), each(chunk(
		digest.Record{Tenant: "acme", User: "mira", Cost: 30, N: 5, Refused: 2},
		digest.Record{Tenant: "globex", Cost: 7, N: 1},
	)), preview.Config{Before: perMinute(t, 100), After: perMinute(t, 60)})
	require.NoError(t, err)
	require.Equal(t, previewreport.Row{
		Tenant: "acme", Tier: "free", Operations: 5, Live: 2, Before: 2, After: 3, NewlyRefused: 1,
		By: []previewreport.Cause{{Level: "tenant", Limit: "minute", N: 1}},
	}, report.Rows[0])
	require.Len(t, report.Rows, 1, "who is refused nothing is not listed")
	require.Equal(t, previewreport.Group{Seen: 2, NewlyRefused: 1, Share: 0.5, Low: 0.5, High: 0.5}, report.Tenants)
	require.Equal(t, previewreport.Group{Seen: 1, NewlyRefused: 1, Share: 1, Low: 1, High: 1}, report.Users)
	require.True(t, report.Halts())
	require.Equal(t, `TENANT  TIER  OPERATIONS  REFUSED NOW  REFUSED THEN  NEWLY  BY
acme    free  5           2            3             1      minute 1
total   -     6           2            3             1      minute 1
newly refused: 50.00 % (50.00 to 50.00, 1 of 2) of tenants, 100.00 % (100.00 to 100.00, 1 of 1) of users; recorded: 100 % of tenants
more than 5 % of tenants or users are newly refused
`, report.String())
}

func TestASmallSampleSaysThatItIsNotSure(t *testing.T) {
	t.Parallel()
	var records []digest.Record
	for i := range 10 {
		name := fmt.Sprint("tenant-", i)
		if digest.HashTenant(nil, name) < everybody/2 {
			records = append(records, digest.Record{Tenant: name, Cost: 1, N: 1})
		}
	}
	half := chunk(records...)
	half.Below = everybody / 2
	report, err := preview.Run(t.Context(), each(half), preview.Config{Before: perMinute(t, 100), After: perMinute(t, 60)})
	require.NoError(t, err)
	require.InDelta(t, 0.5, report.Share, 0.01)
	require.Zero(t, report.Tenants.Share)
	require.Greater(t, report.Tenants.High, previewreport.HaltAbove)
	require.False(t, report.Halts())
	require.Contains(t, report.Remark(), "too small")

	nothing, err := preview.Run(t.Context(), each(), preview.Config{Before: perMinute(t, 100), After: perMinute(t, 60)})
	require.NoError(t, err)
	require.Zero(t, nothing.Share)
	require.Contains(t, nothing.Remark(), "nothing was recorded")
}

func TestAChangeThatTouchesHardlyAnybodyIsRemarkedOn(t *testing.T) {
	t.Parallel()
	report, err := preview.Run(t.Context(), each(chunk(digest.Record{Tenant: "acme", Cost: 1, N: 1})), preview.Config{
		Before: perMinute(t, 100), After: perMinute(t, 60),
	})
	require.NoError(t, err)
	require.Contains(t, report.Remark(), "less than 0.1 %")
}

// TestAPreviewIsBoundedAndWhatIsLeftIsWhole has more asked for than fits.
func TestAPreviewIsBoundedAndWhatIsLeftIsWhole(t *testing.T) {
	t.Parallel()
	var chunks []digest.Chunk
	for range 20 {
		var records []digest.Record
		for i := range 100 {
			records = append(records, digest.Record{Tenant: fmt.Sprint("tenant-", i), Cost: 1, N: 3})
		}
		records = append(records, digest.Record{Tenant: "flood", Cost: 1, N: 1 << 62})
		chunks = append(chunks, chunk(records...))
	}
	report, err := preview.Run(t.Context(), each(chunks...), preview.Config{
		Before: perMinute(t, 100), After: perMinute(t, 59), Operations: 2000, Rows: 3,
	})
	require.NoError(t, err)
	require.LessOrEqual(t, report.Total.Operations, int64(2000))
	require.Less(t, report.Share, 0.5)
	require.LessOrEqual(t, report.LeftOut, 1)
	require.NotZero(t, report.Tenants.Seen)
	require.Equal(t, int64(60*report.Tenants.Seen), report.Total.Operations, "of each tenant that is judged, everything is")
	require.Equal(t, report.Tenants.Seen, report.Tenants.NewlyRefused)
	require.Len(t, report.Rows, 3)
	require.Equal(t, report.Tenants.Seen-3, report.Unlisted)
}

func TestRecordsAndOverridesHoldUnderBothPolicies(t *testing.T) {
	t.Parallel()
	off := bucket.Off
	report, err := preview.Run(t.Context(), each(chunk(
		digest.Record{Tenant: "assigned", Cost: 50, N: 2},
		digest.Record{Tenant: "excused", Cost: 50, N: 3},
		digest.Record{Tenant: "anybody", Cost: 50, N: 3},
	)), preview.Config{
		Before: compiled(t, "version: 1\ndefault: free\ntiers: {free: {limits: {minute: {capacity: 100, per: minute}}}, large: {unlimited: true}}\n"),
		After:  compiled(t, "version: 1\ndefault: free\ntiers: {free: {limits: {minute: {capacity: 50, per: minute}}}, large: {unlimited: true}}\n"),
		Record: func(tenant string) *tiers.Record {
			if tenant == "assigned" {
				return tiers.AssignedTo("large")
			}
			return nil
		},
		Overrides: []preview.Override{{Tenant: "excused", Override: bucket.Override{Mode: &off, Reason: "trial", Actor: "ops", Expires: noon.Add(-time.Hour)}}},
	})
	require.NoError(t, err)
	require.Len(t, report.Rows, 1)
	require.Equal(t, "anybody", report.Rows[0].Tenant)
	require.Equal(t, int64(1), report.Rows[0].NewlyRefused)
}

func TestAnotherKeyThanThatOfTheInstancesIsAMistake(t *testing.T) {
	t.Parallel()
	var c digest.Chunk
	for i := range 50 {
		if name := fmt.Sprint("tenant-", i); digest.HashTenant(nil, name) < everybody/4 {
			c.Records = append(c.Records, digest.Record{Tenant: name, Cost: 1, N: 1})
		}
	}
	c.Version, c.From, c.To, c.Below = 1, noon, noon, everybody/4
	cfg := preview.Config{Before: perMinute(t, 100), After: perMinute(t, 60)}
	_, err := preview.Run(t.Context(), each(c), cfg)
	require.NoError(t, err)
	cfg.Key = []byte("another key of the digests")
	_, err = preview.Run(t.Context(), each(c), cfg)
	require.ErrorIs(t, err, preview.ErrKey)
}

func TestWhatCannotBeReadIsCountedAndWhatCannotBeJudgedIsNamed(t *testing.T) {
	t.Parallel()
	after := compiled(t, "version: 1\ndefault: free\ntiers: {free: {limits: {rows: {unit: rows, capacity: 5, per: minute}}}}\n")
	report, err := preview.Run(t.Context(), func(yield func(digest.Chunk, error) bool) {
		_ = yield(digest.Chunk{}, digest.ErrUnreadable) && yield(digest.Chunk{Below: everybody}, nil) && yield(chunk(digest.Record{Tenant: "acme", N: 1}), nil)
	}, preview.Config{Before: perMinute(t, 100), After: after})
	require.NoError(t, err)
	require.Equal(t, 2, report.Unreadable)
	require.Equal(t, []string{"limits in rows"}, report.NotJudged)

	_, err = preview.Run(t.Context(), each(), preview.Config{Operations: -1, Rows: -1})
	require.ErrorContains(t, err, "Config.Before")
	require.ErrorContains(t, err, "Config.Operations")
	require.ErrorContains(t, err, "Config.Rows")
}

// TestNobodyIsNewlyRefusedByTheSamePolicy draws traffic, and judges it under one policy twice.
func TestNobodyIsNewlyRefusedByTheSamePolicy(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 30 {
		var chunks []digest.Chunk
		for i := range 20 {
			c := chunk()
			c.From, c.To = noon.Add(time.Duration(i)*time.Second), noon.Add(time.Duration(i)*time.Second+900*time.Millisecond)
			for range random.IntN(8) {
				c.Records = append(c.Records, digest.Record{
					Tenant: fmt.Sprint("t", random.IntN(3)), User: fmt.Sprint("u", random.IntN(3)), Cost: random.Int64N(40), N: 1 + random.Int64N(4),
				})
			}
			chunks = append(chunks, c)
		}
		policy := perMinute(t, 1+random.IntN(200))
		report, err := preview.Run(t.Context(), each(chunks...), preview.Config{Before: policy, After: policy})
		require.NoError(t, err)
		require.Zero(t, report.Total.NewlyRefused)
		require.Equal(t, report.Total.Before, report.Total.After)
	}
}
