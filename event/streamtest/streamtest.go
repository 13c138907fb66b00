// Package streamtest holds the contract of stream.Sink as tests: whatever broker events go to, they arrive alike.
// A sink of one's own passes when
//
//	streamtest.Run(t, func(t *testing.T) streamtest.Harness { … })
//
// passes, and [Flood] with the faults that its broker has.
package streamtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
)

// Harness is a sink under test, and its broker, which has nothing at first.
type Harness struct {
	Sink stream.Sink
	// Read returns all that the broker has, the events of each key of a topic in the order in which they are stored. It asks the broker, not
	// the sink.
	Read func() ([]stream.Envelope, error)
	// Freeze stops the broker from answering, and Thaw makes it go on: what was sent in between may arrive then, once.
	Freeze, Thaw func()
	// Restart ends the broker and starts it again with what it has.
	Restart func() error
	// TooLarge is a size in bytes that the sink or the broker refuses.
	TooLarge int
}

// Run checks a sink against the contract. It calls open for each test.
func Run(t *testing.T, open func(*testing.T) Harness) {
	t.Helper()
	for _, test := range [...]struct {
		rule  string
		check func(*scene)
	}{
		{"what is sent is there, whatever stands in it", sameBytes},
		{"a batch of nothing is stored", nothing},
		{"batches and what is in them keep the order of each key", order},
		{"what is too large is refused, and the rest of the batch is stored", tooLarge},
		{"what has no topic is refused", noTopic},
		{"a context that has ended ends a batch", ended},
		{"a broker that is frozen ends with the context, and gets the batch afterwards", frozenBroker},
		{"a broker that is started again has what it has acknowledged", restart},
		{"many send at once", atOnce},
	} {
		t.Run(test.rule, func(t *testing.T) {
			t.Parallel()
			test.check(&scene{t, open(t)})
		})
	}
}

// scene is a sink and what is done to it. Its methods fail the test on an error.
type scene struct {
	*testing.T
	Harness
}

// patience is for how long something that has to happen may take on a busy machine.
const patience = 30 * time.Second

// topic is where these events go.
const topic = "ratelimit.denials"

// Envelope returns the n-th event of a test, a refusal of a tenant on the topic ratelimit.denials. Its ID is id-n.
func Envelope(tenant string, n int) stream.Envelope {
	return stream.Envelope{
		ID: fmt.Sprint("id-", n), Source: "ratelimit:main/web-1", Type: "ratelimit.decision.refused.v1", Subject: tenant,
		Time: time.Unix(1_790_000_000, 0).UTC(), Sequence: uint64(n + 1), Data: fmt.Appendf(nil, `{"n":%d}`, n), Topic: topic,
	}
}

// send sends a batch until it is stored.
func (s *scene) send(batch []stream.Envelope) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	for len(batch) > 0 {
		errs := s.Sink.Send(ctx, batch)
		if errs == nil {
			return
		}
		if len(errs) != len(batch) {
			s.Fatalf("it says something of %d envelopes of %d", len(errs), len(batch))
		}
		var left []stream.Envelope
		for i, err := range errs {
			if err != nil {
				left = append(left, batch[i])
			}
		}
		if ctx.Err() != nil {
			s.Fatalf("not stored within %v: %v", patience, errors.Join(errs...))
		}
		batch = left
	}
}

// stored returns what the broker has, the first of those with one id.
func (s *scene) stored() (all []stream.Envelope, duplicates int) {
	s.Helper()
	read, err := s.Read()
	if err != nil {
		s.Fatal(err)
	}
	seen := map[string]bool{}
	for _, e := range read {
		if seen[e.ID] {
			duplicates++
			continue
		}
		seen[e.ID] = true
		all = append(all, e)
	}
	return all, duplicates
}

// text is an envelope as one can compare it.
func text(e *stream.Envelope) string {
	attributes, err := json.Marshal(e)
	if err != nil {
		return err.Error()
	}
	return e.Topic + " " + string(attributes)
}

// requireStored fails if the broker has not these, or others, or has those of a key in another order.
func (s *scene) requireStored(want []stream.Envelope) {
	s.Helper()
	got, _ := s.stored()
	byKey := func(all []stream.Envelope) map[string][]string {
		texts := map[string][]string{}
		for i := range all {
			key := all[i].Topic + " " + all[i].Key()
			texts[key] = append(texts[key], text(&all[i]))
		}
		return texts
	}
	have, wanted := byKey(got), byKey(want)
	for key, texts := range wanted {
		if a, b := strings.Join(have[key], "\n"), strings.Join(texts, "\n"); a != b {
			s.Fatalf("of %q there is\n%.2000s\nand not\n%.2000s", key, a, b)
		}
	}
	if len(got) != len(want) {
		s.Fatalf("there are %d events, and not %d", len(got), len(want))
	}
}

func sameBytes(s *scene) {
	names := []string{
		"", "acme", "a b", "a.b.c", "*", ">", "a%20b", `a\r\nce-id: x`, "\"", "Zoë & “Söhne”", "日本", "🦆", strings.Repeat("x", 256), strings.Repeat("é", 128), ".", "..", "$JS",
	}
	var batch []stream.Envelope
	for i, name := range names {
		e := Envelope(name, i)
		e.Time = e.Time.Add(time.Duration(i))
		batch = append(batch, e)
	}
	batch[1].Topic, batch[2].Topic = "ratelimit.policy.updates", "other"
	batch[3].Data = json.RawMessage(`{"text":"` + strings.Repeat(`é\u0000\n\"`, 1000) + `"}`)
	batch[4].Sequence, batch[4].Time = 0, time.Time{}
	s.send(batch)
	s.requireStored(batch)
}

func nothing(s *scene) {
	if errs := s.Sink.Send(s.Context(), nil); errs != nil {
		s.Fatal(errs)
	}
	s.requireStored(nil)
}

func order(s *scene) {
	var all []stream.Envelope
	for i := range 1000 {
		all = append(all, Envelope(fmt.Sprint("tenant-", i%7), i))
	}
	for _, bounds := range [][2]int{{0, 1}, {1, 3}, {3, 500}, {500, 1000}} {
		s.send(all[bounds[0]:bounds[1]])
	}
	s.requireStored(all)
}

func tooLarge(s *scene) {
	batch := []stream.Envelope{Envelope("acme", 0), Envelope("acme", 1), Envelope("acme", 2)}
	batch[1].Data = json.RawMessage(`"` + strings.Repeat("x", s.TooLarge) + `"`)
	errs := s.Sink.Send(s.Context(), batch)
	if len(errs) != 3 || errs[0] != nil || !errors.Is(errs[1], stream.ErrTooLarge) || errs[2] != nil {
		s.Fatalf("the errors are %.500v", errs)
	}
	s.requireStored([]stream.Envelope{batch[0], batch[2]})
}

func noTopic(s *scene) {
	batch := []stream.Envelope{Envelope("acme", 0), Envelope("acme", 1), Envelope("acme", 2), Envelope("acme", 3)}
	batch[1].Topic, batch[2].Topic = "", "a/b *"
	errs := s.Sink.Send(s.Context(), batch)
	if len(errs) != 4 || errs[0] != nil || !errors.Is(errs[1], stream.ErrRefused) || !errors.Is(errs[2], stream.ErrRefused) || errs[3] != nil {
		s.Fatalf("the errors are %v", errs)
	}
	s.requireStored([]stream.Envelope{batch[0], batch[3]})
}

func ended(s *scene) {
	batch := []stream.Envelope{Envelope("acme", 0)}
	s.send(batch)
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	late := []stream.Envelope{Envelope("acme", 1), Envelope("other", 2)}
	if errs := s.Sink.Send(ctx, late); errs == nil {
		s.Fatal("it was sent although its context had ended")
	}
	s.send(late)
	s.requireStored(append(batch, late...))
}

func frozenBroker(s *scene) {
	first := []stream.Envelope{Envelope("acme", 0), Envelope("other", 1)}
	s.send(first)
	s.Freeze()
	ctx, cancel := context.WithTimeout(s.Context(), 300*time.Millisecond)
	defer cancel()
	second := []stream.Envelope{Envelope("acme", 2), Envelope("other", 3), Envelope("acme", 4)}
	errs := s.Sink.Send(ctx, second)
	s.Thaw()
	if len(errs) != 3 || errs[0] == nil || errs[1] == nil || errs[2] == nil {
		s.Fatalf("a frozen broker has acknowledged: %v", errs)
	}
	s.send(second)
	s.requireStored(append(first, second...))
}

func restart(s *scene) {
	var all []stream.Envelope
	for round := range 3 {
		batch := []stream.Envelope{Envelope("acme", 10*round), Envelope("other", 10*round+1), Envelope("acme", 10*round+2)}
		s.send(batch)
		all = append(all, batch...)
		if err := s.Restart(); err != nil {
			s.Fatal(err)
		}
	}
	s.requireStored(all)
}

func atOnce(s *scene) {
	done := make(chan []stream.Envelope)
	for g := range 8 {
		go func() {
			var all []stream.Envelope
			for i := range 20 {
				batch := []stream.Envelope{Envelope(fmt.Sprint("tenant-", g), 1000*g+2*i), Envelope(fmt.Sprint("tenant-", g), 1000*g+2*i+1)}
				if errs := s.Sink.Send(s.Context(), batch); errs != nil {
					s.Error(errors.Join(errs...))
				}
				all = append(all, batch...)
			}
			done <- all
		}()
	}
	var all []stream.Envelope
	for range 8 {
		all = append(all, <-done...)
	}
	s.requireStored(all)
}
