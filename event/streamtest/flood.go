package streamtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
)

// Result is what became of the events of a [Flood].
type Result struct {
	// Observed is how many refusals there were, and Dropped how many the queue has counted as dropped.
	Observed, Dropped int
	// Stored is how many the broker has, those of one id counted once, and Duplicates how many there are beside the first of each id.
	Stored, Duplicates int
}

// String is a line of a report.
func (r Result) String() string {
	return fmt.Sprintf("%d refusals: %d stored, %d dropped and counted, %d lost beside, %d stored twice under one id",
		r.Observed, r.Stored, r.Dropped, r.Observed-r.Dropped-r.Stored, r.Duplicates)
}

// tenants is of how many the refusals of a flood are.
const tenants = 100

// Flood brings so many refusals of a hundred tenants through a queue to the sink, while faults happen in equal distances. It fails the
// test if a refusal that was not counted as dropped is not in the broker, if one is there that was, if those of a tenant are in
// another order, or if the gaps of the sequence are not those that were dropped. Read must give the events of each tenant in their order.
//
// It observes some thousand refusals a second, and waits for nobody. Faults happen beside, one after another: one that is to
// last for some time waits by itself.
func Flood(t *testing.T, h Harness, refusals int, faults ...func()) Result {
	t.Helper()
	queue, err := stream.Start(stream.Config{
		Sink: h.Sink, Timeout: time.Second, MaxAge: time.Hour, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	kept := flow(t.Context(), queue, refusals, faults)
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	if err := queue.Close(ctx); err != nil {
		t.Fatalf("after all faults: %v", err)
	}
	s := &scene{t, h}
	got, duplicates := s.stored()
	result := Result{Observed: refusals, Dropped: int(queue.Dropped()), Stored: len(got), Duplicates: duplicates}
	if err := errors.Join(check(got, kept), result.check(len(kept), got)); err != nil {
		t.Fatalf("%v: %v", result, err)
	}
	return result
}

// flow observes the refusals, and returns the ids of those that the queue has kept.
func flow(ctx context.Context, queue *stream.Queue, refusals int, faults []func()) map[string]bool {
	const burst = 20
	kept := map[string]bool{}
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	due, ended := make(chan func(), len(faults)), make(chan struct{})
	go func() {
		defer close(ended)
		for fault := range due {
			fault()
		}
	}()
	happening := 0
	for i := range refusals {
		if happening < len(faults) && i == (happening+1)*refusals/(len(faults)+1) {
			due <- faults[happening]
			happening++
		}
		e := event.Decided{
			At: time.Now(), RefusalID: fmt.Sprintf("FLOOD%08d", i), Outcome: "limited", Code: "RATE_LIMITED", Tenant: fmt.Sprint("tenant-", i%tenants),
			Tier: "free", Mode: "enforce", Kind: "query", Operation: "Search", RootFields: []string{"Query.search"}, Cost: int64(i),
			Limits: []event.LimitState{{Level: "tenant", Limit: "minute", Unit: "points", Capacity: 1000, Exceeded: true, Refuses: true}},
		}
		if queue.Keep(ctx, e) {
			kept[e.RefusalID] = true
		}
		if i%burst == burst-1 {
			<-ticker.C
		}
	}
	close(due)
	<-ended
	return kept
}

// check says whether what is stored is what was kept, in the order of each tenant.
func check(got []stream.Envelope, kept map[string]bool) error {
	last := map[string]uint64{}
	for i := range got {
		e := &got[i]
		if !kept[e.ID] {
			return fmt.Errorf("%s was dropped, and is stored", e.ID)
		}
		if e.Sequence <= last[e.Subject] {
			return fmt.Errorf("of %s, number %d stands behind %d", e.Subject, e.Sequence, last[e.Subject])
		}
		last[e.Subject] = e.Sequence
	}
	return nil
}

// check says whether the numbers add up.
func (r Result) check(kept int, got []stream.Envelope) error {
	if r.Stored+r.Dropped != r.Observed || kept != r.Stored {
		return fmt.Errorf("%d were kept, and that is not all the same", kept)
	}
	numbers := map[uint64]bool{}
	for i := range got {
		numbers[got[i].Sequence] = true
	}
	gaps := 0
	for n := range r.Observed {
		if !numbers[uint64(n+1)] {
			gaps++
		}
	}
	if gaps != r.Dropped {
		return fmt.Errorf("the sequence has %d gaps", gaps)
	}
	return nil
}
