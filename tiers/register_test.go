package tiers_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// threeTiers have four limits each, and budgets of users and of an operation.
func threeTiers() map[string]tiers.Tier {
	all := make(map[string]tiers.Tier)
	for i, name := range []string{"free", "pro", "max"} {
		limits := make(map[string]*tiers.Limit)
		for at, per := range map[string]tiers.Period{"second": tiers.Second, "minute": tiers.Minute, "hour": tiers.Hour, "day": tiers.Day} {
			limits[at] = &tiers.Limit{Capacity: int64(1000 * (i + 1)), Per: per}
		}
		all[name] = tiers.Tier{
			Limits: limits, MaxCost: 500,
			Users:      &tiers.UserRule{OwnerRule: tiers.OwnerRule{Limits: map[string]*tiers.Limit{"minute": {Capacity: 100, Per: tiers.Minute}}}},
			Operations: map[string]tiers.OperationRule{"Mutation.export": {Limits: map[string]*tiers.Limit{"hour": {Capacity: 10, Per: tiers.Hour}}}},
		}
	}
	return all
}

// own is an exception with one limit of its own.
func own(capacity int) tiers.Exception {
	return tiers.Exception{Tier: "pro", Limits: map[string]*tiers.Limit{"minute": {Capacity: int64(capacity), Per: tiers.Minute}}}
}

// numbered is own for tenants that count from zero.
func numbered(i int) tiers.Exception { return own(i + 1) }

// large is a policy that lists tenants, of whom each has the exception of its number.
func large(tenants int, exception func(i int) tiers.Exception) tiers.Policy {
	p := tiers.Policy{Default: "free", Tiers: threeTiers(), Tenants: make(map[string]tiers.Exception, tenants)}
	for i := range tenants {
		p.Tenants[fmt.Sprintf("tenant-%06d", i)] = exception(i)
	}
	return p
}

// growth returns the bytes and objects of the heap that the results of a function keep alive.
func growth(build func() any) (bytes, objects float64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	kept := build()
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(kept)
	return float64(after.HeapAlloc) - float64(before.HeapAlloc), float64(after.HeapObjects) - float64(before.HeapObjects)
}

//nolint:paralleltest // it measures the heap
func TestATenantThatAPolicyListsTakesFewBytes(t *testing.T) {
	const tenants = 10_000
	for _, test := range []struct {
		name           string
		exception      func(i int) tiers.Exception
		asked          bool
		bytes, objects float64
	}{
		{"only assigned to a tier", func(int) tiers.Exception { return tiers.Exception{Tier: "pro"} }, true, 100, 0.1},
		{"with the exception of others", func(i int) tiers.Exception { return own(1000 + i%100) }, true, 200, 0.5},
		{"with an exception of its own, who has not asked", own, false, 320, 2},
		{"with an exception of its own, who has asked", own, true, 2300, 14},
	} {
		t.Run(test.name, func(t *testing.T) {
			policy := large(tenants, func(i int) tiers.Exception { return test.exception(i + 1) })
			bytes, objects := growth(func() any {
				s, err := tiers.Compile(policy)
				require.NoError(t, err)
				for tenant := range policy.Tenants {
					if test.asked {
						s.Rules(tiers.Subject{Tenant: tenant}, tiers.Selection{})
					}
				}
				return s
			})
			t.Logf("%.0f bytes and %.2f objects a tenant", bytes/tenants, objects/tenants)
			require.Less(t, bytes/tenants, test.bytes)
			require.Less(t, objects/tenants, test.objects)
			runtime.KeepAlive(policy)
		})
	}
}

func TestTenantsWithEqualExceptionsShareTheirLimits(t *testing.T) {
	t.Parallel()
	s, err := tiers.Compile(large(10, func(i int) tiers.Exception { return own(100 + i%2) }))
	require.NoError(t, err)
	limits := func(tenant, tier string) *bucket.Limits {
		return s.Rules(tiers.Subject{Tenant: tenant, Tier: tier}, tiers.Selection{}).Buckets[0].Limits
	}
	require.Same(t, limits("tenant-000000", ""), limits("tenant-000002", ""))
	require.NotSame(t, limits("tenant-000000", ""), limits("tenant-000001", ""))
	require.EqualValues(t, 101, limits("tenant-000001", "").All()[1].Capacity)
	require.Same(t, limits("tenant-000000", "max"), limits("tenant-000002", "max"), "in a tier that they carry")
	require.NotSame(t, limits("tenant-000000", ""), limits("tenant-000000", "max"))

	other, err := tiers.Compile(large(2, func(i int) tiers.Exception { return tiers.Exception{MaxCost: int64(1 + i)} }))
	require.NoError(t, err)
	s = other
	require.Same(t, limits("nobody", ""), limits("tenant-000000", ""), "what an exception does not change is the tier's")
}

func TestWhatIsWrongWithEqualExceptionsIsSaidOfEachTenant(t *testing.T) {
	t.Parallel()
	p := large(3, func(int) tiers.Exception { return own(0) })
	p.Tenants["other"], p.Tenants["\x00"] = own(1), own(1)
	_, err := tiers.Compile(p)
	var mistakes *tiers.PolicyError
	require.ErrorAs(t, err, &mistakes)
	require.Len(t, mistakes.Mistakes, 4)
	for i := range 3 {
		require.ErrorContains(t, err, fmt.Sprintf("tenants.tenant-%06d.limits.minute.capacity", i))
	}
	require.ErrorContains(t, err, "the name of a tenant is valid UTF-8")

	s, err := tiers.Compile(large(3, func(int) tiers.Exception {
		return tiers.Exception{Limits: map[string]*tiers.Limit{"minuet": {Capacity: 1000, Per: tiers.Minute}}}
	}))
	require.NoError(t, err)
	for i := range 3 {
		said := 0
		for _, w := range s.Warnings() {
			if strings.HasPrefix(w.Path, fmt.Sprintf("tenants.tenant-%06d.limits.minuet", i)) {
				said++
			}
		}
		require.NotZero(t, said, i)
	}
}

func TestExceptionsAreCompiledOnceHoweverManyAskAtOnce(t *testing.T) {
	t.Parallel()
	s, err := tiers.Compile(large(50, numbered))
	require.NoError(t, err)
	found := make(chan *bucket.Limits, 8)
	for range 8 {
		go func() {
			var last *bucket.Limits
			for i := range 50 {
				for _, tier := range []string{"", "max", "free"} {
					last = s.Rules(tiers.Subject{Tenant: fmt.Sprintf("tenant-%06d", i), Tier: tier}, tiers.Selection{}).Buckets[0].Limits
				}
			}
			found <- last
		}()
	}
	first := <-found
	for range 7 {
		require.Same(t, first, <-found)
	}
}

func BenchmarkRulesOfAHundredThousandTenants(b *testing.B) {
	const tenants = 100_000
	s, err := tiers.Compile(large(tenants, func(i int) tiers.Exception {
		if i%10 == 0 {
			return own(i + 1)
		}
		return tiers.Exception{Tier: "pro"}
	}))
	require.NoError(b, err)
	subjects := make([]tiers.Subject, tenants)
	for i := range subjects {
		subjects[i].Tenant = fmt.Sprintf("tenant-%06d", i*7919%tenants)
	}
	for _, subject := range subjects {
		s.Rules(subject, tiers.Selection{})
	}
	for _, which := range []struct {
		name string
		step int
	}{{"any", 1}, {"own", 10}} {
		b.Run(which.name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i += which.step {
					s.Rules(subjects[i%tenants], tiers.Selection{})
				}
			})
		})
	}
}

func BenchmarkCompileAHundredThousandTenants(b *testing.B) {
	p := large(100_000, func(i int) tiers.Exception {
		if i%10 == 0 {
			return own(i + 1)
		}
		return tiers.Exception{Tier: "pro"}
	})
	b.ReportAllocs()
	for b.Loop() {
		_, err := tiers.Compile(p)
		require.NoError(b, err)
	}
}

// filled returns a value of which no part is zero.
func filled(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			v.Field(i).Set(filled(t.Field(i).Type))
		}
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		v.Elem().Set(filled(t.Elem()))
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(filled(t.Key()), filled(t.Elem()))
	case reflect.Slice:
		v.Set(reflect.Append(v, filled(t.Elem())))
	case reflect.String:
		v.SetString("<\u2028&\"x")
	case reflect.Bool:
		v.SetBool(true)
	default:
		v.SetInt(1<<53 + 1)
	}
	return v
}

// A snapshot keeps exceptions so until somebody asks for them.
func TestNoFieldOfAnExceptionIsLostInJSON(t *testing.T) {
	t.Parallel()
	x, _ := filled(reflect.TypeFor[tiers.Exception]()).Interface().(tiers.Exception)
	x.Limits["removed"], x.Operations["none"] = nil, tiers.OperationRule{Units: map[string][]string{"removed": nil}}
	for _, x := range []tiers.Exception{x, {}, {Teams: &tiers.OwnerException{}, Users: &tiers.UserException{}, Hide: &tiers.Hide{}}} {
		text, err := json.Marshal(x)
		require.NoError(t, err)
		var read tiers.Exception
		require.NoError(t, json.Unmarshal(text, &read))
		require.Equal(t, x, read)
	}
}

//nolint:paralleltest // it counts allocations
func TestLookingUpOneOfManyTenantsAllocatesNothing(t *testing.T) {
	s, err := tiers.Compile(large(1000, numbered))
	require.NoError(t, err)
	room := make([]bucket.Bucket, 4)
	export := tiers.Selection{Fields: []string{"Mutation.export"}}
	var rules tiers.Rules
	for _, subject := range []tiers.Subject{
		{Tenant: "tenant-000007"}, {Tenant: "tenant-000007", User: "ann"}, {Tenant: "tenant-000008", Tier: "max"}, {Tenant: "nobody"},
	} {
		look := func() {
			rules = s.RulesInto(room, subject, export)
		}
		look()
		require.Zero(t, testing.AllocsPerRun(100, look), subject)
		require.GreaterOrEqual(t, len(rules.Buckets), 2, "those of the tenant and of the operation")
	}
}
