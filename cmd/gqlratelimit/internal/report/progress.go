package report

import (
	"fmt"
	"io"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/source"
)

const (
	// progressAfter is how long work lasts before anybody wants to know how far it is.
	progressAfter = time.Second
	// progressEvery is how often it is said again.
	progressEvery = 200 * time.Millisecond
)

// Progress says on one line of a terminal how far long work is. The zero value says nothing.
type Progress struct {
	// Out is the terminal, nil for none.
	Out io.Writer
	// Now is the clock. Nil means time.Now.
	Now func() time.Time

	started time.Time
	said    time.Time
}

// Step says that the work on the item of this index begins, of so many. Nothing is written in the first
// second.
func (p *Progress) Step(index, total int, item string) {
	if p.Out == nil {
		return
	}
	now := time.Now
	if p.Now != nil {
		now = p.Now
	}
	at := now()
	if p.started.IsZero() {
		p.started = at
	}
	if at.Sub(p.started) < progressAfter || at.Sub(p.said) < progressEvery {
		return
	}
	p.said = at
	fmt.Fprintf(p.Out, "\r\x1b[K%d of %d: %.60s", index+1, total, source.Printable(item))
}

// Done removes the line, if there is one.
func (p *Progress) Done() {
	if p.Out != nil && !p.said.IsZero() {
		fmt.Fprint(p.Out, "\r\x1b[K")
	}
}
