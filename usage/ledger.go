package usage

import (
	"maps"
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/internal/pseudonym"
)

// ledger has the absolute numbers of all minutes that are counted, or have not been stored. It belongs to whoever collects.
type ledger struct {
	// tenants, names and most are how many tenants a minute may have, names a tenant, and rows the ledger.
	tenants, names, most int
	minutes              map[int64]map[string]*entry
	rows                 int
	// closed is the newest minute that was forgotten: what comes for it is counted in the next one, since numbers that began anew would be
	// smaller than before.
	closed int64
	// sent are those that were told last.
	sent []*entry
}

// entry is what was counted of a tenant in a minute.
type entry struct {
	account
	// version grows with each change. told is the one that was told last, and stored the last that stands, with as many decisions.
	version, told, stored uint64
	stands                int64
}

// quiet is for how many minutes a minute that was stored is kept: decisions of it may still be on their way.
const quiet = 2

func newLedger(cfg *RecorderConfig) ledger {
	return ledger{tenants: cfg.Tenants, names: cfg.Names, most: cfg.Rows, minutes: make(map[int64]map[string]*entry)}
}

// take adds what a slot has counted in a minute, and returns how many decisions are counted under [Other] in it that were not before.
func (l *ledger) take(p *page) (other uint64) {
	minute := max(p.minute, l.closed+1)
	if !p.other.IsZero() {
		e := l.entry(minute, Other)
		e.all, e.version = e.all.plus(p.other), e.version+1
	}
	for tenant, a := range p.accounts {
		if a.all.IsZero() && a.crossings == nil {
			continue
		}
		if tenant != Other && l.minutes[minute][tenant] == nil && !l.admits(minute, tenant, a) {
			e := l.entry(minute, Other)
			e.all, e.version = e.all.plus(a.all), e.version+1
			other += uint64(a.all.decisions())
			continue
		}
		other += l.add(l.entry(minute, tenant), a)
	}
	return other
}

// admits reports whether a tenant finds room in a minute. The second half is for those that were there a minute before, or ask often.
func (l *ledger) admits(minute int64, tenant string, a *account) bool {
	of := l.minutes[minute]
	switch {
	case len(of) >= l.tenants || l.rows >= l.most:
		return false
	case len(of) < l.tenants/2:
		return true
	default:
		return a.all.decisions() >= often || l.minutes[minute-1][tenant] != nil
	}
}

// entry returns that of a tenant in a minute.
func (l *ledger) entry(minute int64, tenant string) *entry {
	of := l.minutes[minute]
	if of == nil {
		of = make(map[string]*entry)
		l.minutes[minute] = of
	}
	e := of[tenant]
	if e == nil {
		e = &entry{account: account{names: make(map[name]*Numbers)}}
		of[tenant] = e
		l.rows++
	}
	return e
}

// add adds an account to an entry, and returns how many decisions are under [Other] in it.
func (l *ledger) add(e *entry, a *account) (other uint64) {
	e.version++
	e.all = e.all.plus(a.all)
	for of, n := range a.names {
		if n.IsZero() {
			continue
		}
		room := l.names
		if l.rows >= l.most {
			room = 0
		}
		before := len(e.names)
		found, own := e.named(room, of)
		*found = found.plus(*n)
		l.rows += len(e.names) - before
		if !own && of.text != Other {
			other += uint64(n.decisions())
		}
	}
	before := len(e.crossings)
	for of, times := range a.crossings {
		if l.rows < l.most {
			e.cross(of, times)
		}
	}
	l.rows += len(e.crossings) - before
	return other
}

// forget leaves out minutes that stand and are over, and the oldest ones where there is no room for the present one. It returns how many decisions
// are lost with these.
func (l *ledger) forget(now int64) (lost uint64) {
	for _, minute := range slices.Sorted(maps.Keys(l.minutes)) {
		stands, open := true, int64(0)
		for _, e := range l.minutes[minute] {
			stands = stands && e.version == e.stored
			open += e.all.decisions() - e.stands
		}
		done, short := minute < now-quiet && stands, minute < now && l.rows > l.most/8*7
		if !done && !short {
			continue
		}
		lost += uint64(open)
		for _, e := range l.minutes[minute] {
			l.rows -= 1 + len(e.names) + len(e.crossings)
		}
		delete(l.minutes, minute)
		l.closed = max(l.closed, minute)
	}
	return lost
}

// tell adds what does not stand to a batch.
func (l *ledger) tell(b *Batch) {
	l.sent = l.sent[:0]
	for minute, of := range l.minutes {
		for tenant, e := range of {
			if e.version == e.stored {
				continue
			}
			e.told = e.version
			l.sent = append(l.sent, e)
			e.rows(b, Decisions{Tenant: tenant, Minute: timeOf(minute)})
		}
	}
}

// rows adds the rows of an entry to a batch.
func (e *entry) rows(b *Batch, row Decisions) {
	for of, times := range e.crossings {
		b.Reached = append(b.Reached, Reached{
			Tenant: row.Tenant, Minute: row.Minute, Level: of.level, Owner: of.owner, Limit: of.limit, Threshold: of.threshold, Times: times,
		})
	}
	row.Numbers = e.all
	b.Decisions = append(b.Decisions, row)
	for of, n := range e.names {
		row.By, row.Name, row.Numbers = of.by, of.written(), *n
		b.Decisions = append(b.Decisions, row)
	}
}

// written returns the name as it is told.
func (n name) written() string {
	if n.hash != 0 {
		return pseudonym.Text(n.hash)
	}
	if n.level != "" {
		return pseudonym.Written(n.level) + ":" + pseudonym.Written(n.text)
	}
	return pseudonym.Written(n.text)
}

// stored says that what was told last stands.
func (l *ledger) stored() {
	for _, e := range l.sent {
		if e.stored = e.told; e.version == e.told {
			e.stands = e.all.decisions()
		}
	}
	l.sent = l.sent[:0]
}
