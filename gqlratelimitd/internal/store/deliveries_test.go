package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/webhook/delivery"
)

func TestDeliveriesAreBroughtOnceAndReplayed(t *testing.T) {
	t.Parallel()
	for kind, empty := range kinds {
		for _, test := range [...]struct {
			rule  string
			check func(*deliveries)
		}{
			{"what is put is due once, and again when its lease ends", leased},
			{"one id is one message of an endpoint", same},
			{"no endpoint has more under lease than it may", bounded},
			{"whose lease has ended stores nothing", late},
			{"what is dead is listed and replayed under its id", dead},
			{"dead ones are bounded, and the latest stay", manyDead},
		} {
			t.Run(kind+"/"+test.rule, func(t *testing.T) {
				t.Parallel()
				db := open(t, store.Config{URL: empty(t), Now: func() time.Time { return start }})
				endpoint(t, db, "acme", "a")
				endpoint(t, db, "globex", "b")
				test.check(&deliveries{t, db.Deliveries()})
			})
		}
	}
}

type deliveries struct {
	*testing.T
	store.Deliveries
}

var start = time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)

const (
	lease = time.Minute
	many  = 1000
)

func (s *deliveries) must(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Fatalf("error %v, want %v", err, want)
	}
}

func (s *deliveries) put(endpoint, id string) {
	s.Helper()
	m := webhook.Message{ID: id, Body: []byte(`{"id":"` + id + `"}`)}
	s.must(s.Put(s.Context(), delivery.Record{Endpoint: endpoint, Delivery: webhook.Begin(m, start)}), nil)
}

// due wants so many records.
func (s *deliveries) due(now time.Time, limit, perEndpoint, want int) []delivery.Record {
	s.Helper()
	all, err := s.Due(s.Context(), now, lease, limit, perEndpoint)
	s.must(err, nil)
	if len(all) != want {
		s.Fatalf("%d are due, want %d", len(all), want)
	}
	return all
}

func (s *deliveries) done(r delivery.Record, outcome webhook.Outcome, want error) {
	s.Helper()
	r.Delivery = r.Delivery.After(webhook.Result{Outcome: outcome, Status: 500}, start, 0)
	s.must(s.Done(s.Context(), r), want)
}

func leased(s *deliveries) {
	s.put("a", "1")
	s.due(start.Add(-time.Second), many, many, 0)
	r := s.due(start, many, many, 1)[0]
	if string(r.Delivery.Body) != `{"id":"1"}` || r.Endpoint != "a" || r.Delivery.ID != "1" || r.Lease == 0 {
		s.Fatalf("it is %+v", r)
	}
	s.due(start.Add(lease-time.Second), many, many, 0)
	r = s.due(start.Add(lease), many, many, 1)[0]
	s.done(r, webhook.Failed, nil)
	s.due(start.Add(4*time.Second), many, many, 0)
	r = s.due(start.Add(5*time.Second), many, many, 1)[0]
	if r.Delivery.Attempts != 1 || r.Delivery.Status != 500 {
		s.Fatalf("it forgot an attempt: %+v", r)
	}
	s.done(r, webhook.Delivered, nil)
	s.due(start.Add(many*time.Hour), many, many, 0)
}

func same(s *deliveries) {
	s.put("a", "1")
	s.put("a", "1")
	s.put("b", "1")
	for _, r := range s.due(start, many, many, 2) {
		s.done(r, webhook.Gone, nil)
	}
	s.put("a", "1")
	s.due(start, many, many, 0)
}

func bounded(s *deliveries) {
	for i := range 5 {
		s.put("a", fmt.Sprint(i))
	}
	s.put("b", "1")
	first := s.due(start, many, 2, 3)
	s.due(start, many, 2, 0)
	for _, r := range first {
		s.done(r, webhook.Delivered, nil)
	}
	s.due(start, 1, 2, 1)
	s.due(start, many, 2, 1)
}

func late(s *deliveries) {
	s.put("a", "1")
	old := s.due(start, many, many, 1)[0]
	young := s.due(start.Add(lease), many, many, 1)[0]
	s.done(old, webhook.Delivered, delivery.ErrLease)
	s.done(young, webhook.Failed, nil)
	s.done(young, webhook.Delivered, delivery.ErrLease)
	s.due(start.Add(lease), many, many, 1)
}

func dead(s *deliveries) {
	s.put("a", "1")
	s.must(s.Replay(s.Context(), "a", "1"), delivery.ErrNotDead)
	s.done(s.due(start, many, many, 1)[0], webhook.Gone, nil)
	all, err := s.Dead(s.Context(), "a", many)
	s.must(err, nil)
	if len(all) != 1 || all[0].Delivery.ID != "1" || all[0].Delivery.State != webhook.Dead {
		s.Fatalf("dead are %+v", all)
	}
	s.must(s.Replay(s.Context(), "a", "1"), nil)
	s.must(s.Replay(s.Context(), "a", "1"), delivery.ErrNotDead)
	s.done(s.due(start, many, many, 1)[0], webhook.Delivered, nil)
}

func manyDead(s *deliveries) {
	for i := range many {
		s.put("a", fmt.Sprint(i))
		s.done(s.due(start, many, many, 1)[0], webhook.Gone, nil)
	}
	all, err := s.Dead(s.Context(), "a", many)
	s.must(err, nil)
	if len(all) == 0 || len(all) >= many || all[0].Delivery.ID != fmt.Sprint(many-1) {
		s.Fatalf("%d are dead", len(all))
	}
}
