package directory_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// The tenants of the figures: 100 000, of which every tenth has limits of its own, each another one.
const (
	manyTenants = 100_000
	everyTenth  = 10
)

func tenantName(i int) string { return fmt.Sprintf("tenant-%06d", i) }

// generated has a record of each tenant and keeps none in memory.
type generated struct{}

func (generated) Tenant(_ context.Context, tenant string) (*directory.Record, error) {
	i, err := strconv.Atoi(strings.TrimPrefix(tenant, "tenant-"))
	if err != nil {
		return nil, err
	}
	document := []byte(`{"tier":"pro"}`)
	if i%everyTenth == 0 {
		document = fmt.Appendf(nil, `{"tier":"pro","limits":{"minute":{"capacity":%d,"per":"minute"}}}`, 1000+i)
	}
	return &directory.Record{Tenant: tenant, Revision: 1, Document: document}, nil
}

func (generated) Changes(context.Context, directory.Mark) (directory.Page, error) {
	return directory.Page{Through: directory.Mark{Origin: "x", Revision: 1}, Gap: true}, nil
}

// settled is a source that says nothing of a gap once it was read.
type settled struct{ generated }

func (s settled) Changes(ctx context.Context, since directory.Mark) (directory.Page, error) {
	page, err := s.generated.Changes(ctx, since)
	page.Gap = since != page.Through
	return page, err
}

// fill returns a directory with many tenants in its cache, and how much memory that takes.
func fill(t testing.TB, tenants int, maxBytes int64) (d *directory.Directory, heap float64) {
	t.Helper()
	var before, after runtime.MemStats
	policy := compiled(t)
	runtime.GC()
	runtime.ReadMemStats(&before)
	d, err := directory.Open(t.Context(), policy, settled{}, directory.Config{
		MaxBytes: maxBytes, MissesPerSecond: 1_000_000, MissDeadline: 5e9, Observe: directory.ObserveConfig{Logger: quiet},
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	for i := range tenants {
		d.Prepare(t.Context(), tiers.Subject{Tenant: tenantName(i)})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	return d, float64(after.HeapAlloc) - float64(before.HeapAlloc)
}

func TestATenantTakesNoMoreMemoryThanTheCacheSaysAndAHundredThousandFit(t *testing.T) {
	// A fifth of the tenants, and a fifth of the bound that there is by default.
	const tenants, bound = manyTenants / 5, (32 << 20) / 5
	d, heap := fill(t, tenants, bound)
	status := d.Status()
	require.Equal(t, tenants, status.Known)
	t.Logf("%.0f bytes a tenant, and %.0f as the cache counts", heap/tenants, float64(status.Bytes)/tenants)
	require.Less(t, heap/tenants, 250.0)
	require.Less(t, heap, 1.25*float64(status.Bytes))
}

func BenchmarkPrepare(b *testing.B) {
	d, heap := fill(b, manyTenants, 0)
	subjects := make([]tiers.Subject, manyTenants)
	for i := range subjects {
		subjects[i].Tenant = tenantName(i * 7919 % manyTenants)
	}
	ctx := b.Context()
	b.Run("record", func(b *testing.B) {
		b.ReportAllocs()
		b.ReportMetric(heap/manyTenants, "B/tenant")
		for i := 0; b.Loop(); i++ {
			d.Prepare(ctx, subjects[i%manyTenants])
		}
	})
	b.Run("rules", func(b *testing.B) {
		b.ReportAllocs()
		snapshot := d.Snapshot()
		for i := 0; b.Loop(); i++ {
			subject := subjects[i%manyTenants]
			snapshot.Rules(subject, tiers.Selection{Record: d.Prepare(ctx, subject)})
		}
	})
	b.Run("record, one tenant", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			d.Prepare(ctx, subjects[0])
		}
	})
}
