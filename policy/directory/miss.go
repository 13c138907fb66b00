package directory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const (
	// maxFlights is how many questions about tenants are under way at once, and maxNewFlights how many of those are about
	// tenants without a record in the cache: those who have one are asked for again in the rest.
	maxFlights    = 64
	maxNewFlights = 48
	// flightTimeout is how long a question may take. Requests do not wait that long, those that come after do not wait again.
	flightTimeout = 2 * time.Second
	// maxFailures is after how many questions in a row without an answer the source is away, until it says again what has
	// changed.
	maxFailures = 3
)

// flight is a question about a tenant, for all who wait for its answer.
type flight struct {
	tenant string
	began  time.Time
	// epoch is that in which it began, and least the newest change of the tenant since then.
	epoch uint32
	least uint64
	done  chan struct{}
	// record is the answer, once done is closed.
	record *tiers.Record
}

// miss asks the source about a tenant.
func (d *Directory) miss(ctx context.Context, tenant string) *tiers.Record {
	f, otherwise, result := d.join(tenant) //nolint:contextcheck // The answer is for all who wait, and for those who come.
	if f == nil {
		d.told.missed(ctx, result)
		return otherwise
	}
	left := d.cfg.MissDeadline - time.Since(f.began)
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-f.done:
		return f.record
	case <-timer.C:
	case <-ctx.Done():
	}
	d.told.missed(ctx, resultLate)
	return otherwise
}

// join returns the question about a tenant that is under way, or begins it, and what holds without its answer. The question is
// nil if there is none, and then the result says why.
func (d *Directory) join(tenant string) (f *flight, otherwise *tiers.Record, result string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.cache.find(tenant)
	otherwise = d.unknown
	if e != nil {
		otherwise = e.record()
		if e.epoch.Load() == d.epoch.Load() {
			// The answer has come meanwhile.
			return nil, otherwise, ""
		}
	}
	if f := d.flights[tenant]; f != nil {
		return f, otherwise, ""
	}
	if result := d.refuses(e != nil && e.kind != nil); result != "" {
		return nil, otherwise, result
	}
	f = &flight{tenant: tenant, began: time.Now(), epoch: d.epoch.Load(), done: make(chan struct{})}
	d.flights[tenant] = f
	d.ended.Go(func() { d.fly(f) })
	return f, otherwise, ""
}

// refuses says why the source is not asked, empty if it is.
func (d *Directory) refuses(known bool) string {
	switch {
	case d.away, d.life.Err() != nil:
		return resultAway
	case len(d.flights) >= maxFlights, !known && len(d.flights) >= maxNewFlights:
		return resultBusy
	case known:
		return ""
	}
	now, rate := time.Now(), float64(d.cfg.MissesPerSecond)
	d.misses = min(rate, d.misses+rate*now.Sub(d.refilled).Seconds())
	d.refilled = now
	if d.misses < 1 {
		return resultLimited
	}
	d.misses--
	return ""
}

// fly asks the source, and puts the answer into the cache.
func (d *Directory) fly(f *flight) {
	ctx, cancel := context.WithTimeout(d.life, flightTimeout)
	defer cancel()
	var (
		answer *Record
		record *tiers.Record
	)
	err := guard.Call("Source.Tenant", func() (err error) {
		answer, err = d.source.Tenant(ctx, f.tenant)
		return err
	})
	result := resultFailed
	if err == nil {
		record, result, err = d.compile(f.tenant, answer)
	}
	if err != nil && d.life.Err() == nil {
		d.told.warn(ctx, result, f.tenant, err)
	}
	d.land(f, answer, record, result)
	d.told.missed(ctx, result)
}

// compile returns the record of a source's answer, compiled for the policy of the moment.
func (d *Directory) compile(tenant string, answer *Record) (record *tiers.Record, result string, err error) {
	if answer == nil {
		return nil, resultAbsent, nil
	}
	if answer.Tenant != tenant || answer.Revision == 0 {
		return nil, resultMalformed, fmt.Errorf("the answer is about %.80q, revision %d", answer.Tenant, answer.Revision)
	}
	record, err = tiers.ParseRecord(answer.Document)
	if err != nil {
		return nil, resultMalformed, err
	}
	result = resultFound
	err = guard.Call("compiling a record", func() error {
		// It is kept with the record: no request waits for it.
		return d.policy.Snapshot().Rules(tiers.Subject{Tenant: tenant}, tiers.Selection{Record: record}).Misfit
	})
	if err != nil {
		result = resultMisfit
	}
	return record, result, err
}

// land ends a question.
func (d *Directory) land(f *flight, answer *Record, record *tiers.Record, result string) {
	gone := false
	defer func() {
		if gone {
			d.told.gone()
		}
	}()
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.flights, f.tenant)
	defer close(f.done)
	e := d.cache.find(f.tenant)
	f.record = d.unknown
	if e != nil {
		f.record = e.record()
	}
	if result == resultFailed {
		gone = d.failed()
		return
	}
	d.failures = 0
	var revision uint64
	if answer != nil {
		revision = answer.Revision
	}
	epoch := f.epoch
	if revision < f.least {
		// It was read before the change.
		epoch = 0
	}
	if result == resultMalformed {
		// What was known of the tenant stays until its record changes again. One of whom nothing was known has the tier of
		// those.
		record = f.record
	}
	f.record = d.cache.put(f.tenant, record, revision, epoch).record()
	d.changed++
}

// failed notes that a question has no answer, and returns whether the source is away since then.
func (d *Directory) failed() bool {
	d.failures++
	if d.failures < maxFailures || d.away || d.life.Err() != nil {
		return false
	}
	d.away = true
	return true
}

// errGoesBack is a page that leads nowhere.
var errGoesBack = errors.New("directory: a page of changes does not go on from the one before")

// check returns what is wrong with a page.
func (p *Page) check(since Mark) error {
	switch {
	case len(p.Changes) > MaxPage:
		return fmt.Errorf("directory: a page of %d changes, want %d at most", len(p.Changes), MaxPage)
	case len(p.Through.Origin) > MaxOrigin:
		return fmt.Errorf("directory: an origin of %d bytes, want %d at most", len(p.Through.Origin), MaxOrigin)
	case !p.Gap && (p.Through.Origin != since.Origin || p.Through.Revision < since.Revision),
		p.More && (p.Gap || p.Through.Revision == since.Revision):
		return errGoesBack
	}
	return nil
}

// apply has what a page names asked for again.
func (d *Directory) apply(page *Page) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mark = page.Through; page.Gap {
		d.epoch.Add(1)
		d.changed++
		return
	}
	for _, change := range page.Changes {
		if f := d.flights[change.Tenant]; f != nil {
			f.least = max(f.least, change.Revision)
		}
		if e := d.cache.find(change.Tenant); e != nil && e.revision < change.Revision {
			e.epoch.Store(0)
		}
	}
	if len(page.Changes) > 0 {
		d.changed++
	}
}

// document returns the document of a record as it is written to the disk, nil for none.
func document(r *tiers.Record) []byte {
	if r == nil {
		return nil
	}
	return bytes.Clone([]byte(r.Document()))
}
