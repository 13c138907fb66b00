package directory

import (
	"context"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/follow"
)

// hintGap is the shortest time between two questions because of hints: where records are written all the time, all instances ask.
const hintGap = 100 * time.Millisecond

// follows says how the changes of the source are followed.
func (d *Directory) follows() follow.Config[*Page] {
	cfg := follow.Config[*Page]{
		Source: "Source", Read: d.read, Judge: d.judge, Interval: d.cfg.Interval, Patience: flightTimeout, Gap: hintGap,
	}
	if hinter, ok := d.source.(Hinter); ok {
		cfg.Subscribe = hinter.Hints
	}
	return cfg
}

// read asks what has changed, page by page. It applies all pages but the last one, which it returns.
func (d *Directory) read(ctx context.Context) (*Page, error) {
	for {
		d.mu.Lock()
		since := d.mark
		d.mu.Unlock()
		page, err := d.source.Changes(ctx, since)
		if err == nil {
			err = page.check(since)
		}
		if err != nil {
			return nil, err
		}
		if !page.More {
			return &page, nil
		}
		d.apply(&page)
	}
}

// judge applies the last page, or notes that there is none.
func (d *Directory) judge(ctx context.Context, answer follow.Answer[*Page]) error {
	if answer.Err == nil {
		d.apply(answer.Value)
	}
	d.mu.Lock()
	was := d.away
	if answer.Err == nil {
		d.failures, d.away = 0, false
	} else {
		d.failures = max(d.failures, maxFailures-1)
		d.failed()
	}
	is := d.away
	d.mu.Unlock()
	d.told.answered(ctx, was, is, answer.Err)
	return answer.Err
}
