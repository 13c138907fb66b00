package directorytest

import (
	"context"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
)

// patience is for how long something that has to happen may take on a busy machine.
const patience = 30 * time.Second

// hintTests are about sources with hints.
var hintTests = []test{
	{hints: true, rule: "a hint comes when a subscription stands, and when a record was written", check: func(s *scene) {
		s.put("acme", pro, 0)
		hinter := s.Source.(directory.Hinter) //nolint:errcheck // The rule is about those that are one.
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		woken, ended := make(chan struct{}, 1), make(chan error, 1)
		go func() {
			ended <- hinter.Hints(ctx, func() {
				select {
				case woken <- struct{}{}:
				default:
				}
			})
		}()
		wait := func(what string) {
			s.Helper()
			select {
			case <-woken:
			case err := <-ended:
				s.Fatalf("%s: the subscription has ended: %v", what, err)
			case <-time.After(patience):
				s.Fatalf("%s: no hint within %v", what, patience)
			}
		}
		wait("it stands")
		writer := s.Open()
		for i, tenant := range []string{"globex", "initech", "acme"} {
			expected := uint64(0)
			if tenant == "acme" {
				expected = 1
			}
			_, err := writer.Put(s.ctx, tenant, free, expected)
			s.ok(err)
			wait(tenant)
			s.true(s.mark().Revision == uint64(i+2), "the hint comes before the record")
		}
		cancel()
		s.true(<-ended != nil, "a subscription has ended without an error")
	}},
}
