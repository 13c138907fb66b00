package buckettest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// The bounds that bucket.Override, bucket.OverrideStore and bucket.Limit document.
const (
	maxOverrides      = 128
	maxOverrideBytes  = 32 << 10
	maxOverrideOwner  = 512
	maxOverrideReason = 256
	maxOverrideActor  = 128
	maxNameLength     = 64
	maxPeriod         = 10 * 366 * 24 * time.Hour
	// maxReceiptAge is how old a receipt without a claim may be.
	maxReceiptAge = time.Minute
)

func (s *scene) listed() []bucket.Override {
	s.Helper()
	all, err := s.records().ListOverrides(s.ctx, s.tenant)
	s.ok(err)
	return all
}

var overrideRecordTests = []test{
	{"a record is returned as it was set", func(s *scene) {
		start := s.after(0)
		want := []bucket.Override{
			{Owner: bucket.Owner{}, Mode: modeOf(bucket.Enforce), Blocked: true},
			{Owner: core, Unlimited: true},
			{Owner: ann, Limit: "minute", Capacity: 1 << 40, Refill: 1<<53 - 1, Period: maxPeriod, Mode: modeOf(bucket.Off)},
			{Owner: bucket.Owner{Level: bucket.Operation, Name: "Query.*\x00{é}"}, Mode: modeOf(bucket.Shadow), Expires: start.Add(time.Hour)},
			{Owner: bucket.Owner{Level: bucket.Operation, Name: "Mutation.login", Part: "\x00\x01ann"}, Limit: "minute", Capacity: 7},
			{Owner: bucket.Owner{Level: bucket.Operation, Name: "Mutation.login"}, Limit: "minute", Capacity: 8},
			{Owner: bucket.Owner{Level: bucket.User, Name: strings.Repeat("n", maxOverrideOwner)}, Limit: strings.Repeat("l", maxNameLength), Capacity: 1},
		}
		for i := range want {
			if replaced := s.override(want[i]); replaced != nil {
				s.Fatalf("replaced %v", *replaced)
			}
			want[i].Reason, want[i].Actor, want[i].SetAt = "ticket 17", "support", start
			got, err := s.records().GetOverride(s.ctx, s.tenant, want[i].Owner, want[i].Limit)
			s.ok(err)
			s.equal(*got, want[i], "record")
		}
		s.equal(s.listed(), want, "all records")
	}},
	{"a record replaces the one before it, which is returned", func(s *scene) {
		s.override(bucket.Override{Owner: ann, Limit: "minute", Capacity: 1})
		s.override(bucket.Override{Owner: ann, Blocked: true})
		replaced := s.override(bucket.Override{Owner: ann, Limit: "minute", Refill: 2})
		s.equal(replaced.Capacity, int64(1), "capacity of what was replaced")
		all := s.listed()
		s.equal(len(all), 2, "records")
		s.equal(all[1].Capacity, int64(0), "capacity")
		s.equal(all[1].Refill, int64(2), "refill")
	}},
	{"deleting and clearing return what there was", func(s *scene) {
		s.override(bucket.Override{Owner: ann, Blocked: true})
		s.override(bucket.Override{Owner: core, Blocked: true})
		removed, err := s.records().DeleteOverride(s.ctx, s.tenant, ann, "")
		s.ok(err)
		s.equal(removed.Owner, ann, "removed")
		for _, key := range []struct {
			owner bucket.Owner
			limit string
		}{{ann, ""}, {core, "minute"}} {
			removed, err = s.records().DeleteOverride(s.ctx, s.tenant, key.owner, key.limit)
			s.ok(err)
			s.equal(removed == nil, true, "nothing was removed")
		}
		all, err := s.records().ClearOverrides(s.ctx, s.tenant)
		s.ok(err)
		s.equal(len(all), 1, "cleared")
		s.equal(len(s.listed()), 0, "left")
		all, err = s.records().ClearOverrides(s.ctx, s.tenant)
		s.ok(err)
		s.equal(len(all), 0, "cleared again")
	}},
	{"an expired record is as none", func(s *scene) {
		s.override(bucket.Override{Owner: ann, Blocked: true, Expires: s.after(time.Second)})
		s.override(bucket.Override{Owner: core, Blocked: true})
		s.Advance(time.Second)
		got, err := s.records().GetOverride(s.ctx, s.tenant, ann, "")
		s.ok(err)
		s.equal(got == nil, true, "gone")
		s.equal(s.override(bucket.Override{Owner: ann, Blocked: true}) == nil, true, "nothing was replaced")
		s.equal(len(s.listed()), 2, "records")
	}},
	{"a tenant has no more records than fit", func(s *scene) {
		expires := s.after(time.Second)
		set := func(i int) error {
			_, err := s.records().SetOverride(s.ctx, s.tenant, bucket.Override{
				Owner: bucket.Owner{Level: bucket.User, Name: fmt.Sprint(i)}, Blocked: true, Reason: "r", Actor: "a", Expires: expires,
			})
			return err
		}
		for i := range maxOverrides {
			s.ok(set(i))
		}
		s.ok(set(5))
		s.equal(errors.Is(set(maxOverrides), bucket.ErrOverridesFull), true, "full")
		s.equal(len(s.listed()), maxOverrides, "records")
		s.Advance(time.Second)
		expires = expires.Add(time.Hour)
		s.ok(set(maxOverrides))
		s.equal(len(s.listed()), 1, "records after the others expired")
	}},
	{"the records of a tenant take no more bytes than fit", func(s *scene) {
		n := 0
		for ; ; n++ {
			_, err := s.records().SetOverride(s.ctx, s.tenant, bucket.Override{
				Owner:   bucket.Owner{Level: bucket.User, Name: fmt.Sprintf("%0*d", maxOverrideOwner, n)},
				Blocked: true, Reason: strings.Repeat("r", maxOverrideReason), Actor: strings.Repeat("a", maxOverrideActor),
			})
			if err != nil {
				s.equal(errors.Is(err, bucket.ErrOverridesFull), true, "full")
				break
			}
		}
		// 8 bytes, and of each record 43 and its texts.
		s.equal(n, (maxOverrideBytes-8)/(43+maxOverrideOwner+maxOverrideReason+maxOverrideActor), "records")
		s.equal(len(s.listed()), n, "records")
	}},
	{"what is no record is refused", func(s *scene) {
		audited := func(o bucket.Override) bucket.Override {
			o.Reason, o.Actor = "r", "a"
			return o
		}
		beyond := bucket.Off + 1
		for name, wrong := range map[string]bucket.Override{
			"nothing":          audited(bucket.Override{}),
			"no reason":        {Blocked: true, Actor: "a"},
			"no actor":         {Blocked: true, Reason: "r"},
			"long reason":      {Blocked: true, Actor: "a", Reason: strings.Repeat("r", maxOverrideReason+1)},
			"not text":         {Blocked: true, Actor: "a", Reason: "\xff"},
			"numbers for all":  audited(bucket.Override{Capacity: 1}),
			"blocked limit":    audited(bucket.Override{Limit: "minute", Blocked: true}),
			"both":             audited(bucket.Override{Blocked: true, Unlimited: true}),
			"unlimited mode":   audited(bucket.Override{Unlimited: true, Mode: modeOf(bucket.Enforce)}),
			"mode":             audited(bucket.Override{Mode: &beyond}),
			"negative":         audited(bucket.Override{Limit: "minute", Capacity: -1}),
			"capacity":         audited(bucket.Override{Limit: "minute", Capacity: 1<<52 + 1}),
			"refill":           audited(bucket.Override{Limit: "minute", Refill: 1 << 53}),
			"period":           audited(bucket.Override{Limit: "minute", Period: time.Microsecond}),
			"long period":      audited(bucket.Override{Limit: "minute", Period: maxPeriod + time.Millisecond}),
			"expired for ever": audited(bucket.Override{Blocked: true, Expires: time.UnixMilli(0)}),
			"expired":          audited(bucket.Override{Blocked: true, Expires: s.after(0)}),
			"expired long ago": audited(bucket.Override{Blocked: true, Expires: s.after(-time.Hour)}),
			"far future":       audited(bucket.Override{Blocked: true, Expires: time.UnixMilli(1<<47 + 1)}),
			"unknown level":    audited(bucket.Override{Owner: bucket.Owner{Level: bucket.Operation + 1, Name: "x"}, Blocked: true}),
			"name of a tenant": audited(bucket.Override{Owner: bucket.Owner{Name: "x"}, Blocked: true}),
			"nameless user":    audited(bucket.Override{Owner: bucket.Owner{Level: bucket.User}, Blocked: true}),
			"part of a user":   audited(bucket.Override{Owner: bucket.Owner{Level: bucket.User, Name: "x", Part: "y"}, Blocked: true}),
			"long part": audited(bucket.Override{
				Owner: bucket.Owner{Level: bucket.Operation, Name: "x", Part: strings.Repeat("n", maxOverrideOwner)}, Blocked: true,
			}),
			"long owner":        audited(bucket.Override{Owner: bucket.Owner{Level: bucket.User, Name: strings.Repeat("n", maxOverrideOwner+1)}, Blocked: true}),
			"long limit's name": audited(bucket.Override{Limit: strings.Repeat("l", maxNameLength+1), Capacity: 1}),
		} {
			_, err := s.records().SetOverride(s.ctx, s.tenant, wrong)
			s.equal(errors.Is(err, bucket.ErrInvalid), true, name)
		}
		s.equal(len(s.listed()), 0, "records")
	}},
	{"tenants have records of their own", func(s *scene) {
		s.override(bucket.Override{Blocked: true})
		other := s.tenant + "x"
		result, err := s.Store.Take(s.ctx, bucket.Take{Tenant: other, Buckets: s.tenantOf(perMinute(10)), Amounts: points(1)})
		s.ok(err)
		s.verdict(result, bucket.Admitted)
		all, err := s.records().ListOverrides(s.ctx, other)
		s.ok(err)
		s.equal(len(all), 0, "records")
	}},
}
