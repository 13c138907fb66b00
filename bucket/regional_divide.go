package bucket

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// part says which part of limits of a policy other limits are. The zero value is the whole.
type part uint8

const (
	wholePart part = iota
	// sharePart is what a region has for itself, and lentPart what home leases to all regions.
	sharePart
	lentPart
)

// dividedLimits are the parts of the limits of a tenant, or why they have none.
type dividedLimits struct {
	share, lent *Limits
	err         error
}

// divider divides limits between a region and home. Limits that it has divided are divided once.
type divider struct {
	// share is what the region has of each limit, and lent what home leases, in percent.
	share, lent int64
	known       sync.Map
	kept        atomic.Int64
}

// maxDivided is how many limits are remembered: policies that were replaced must not add up.
const maxDivided = 4096

// divide returns the parts of limits.
func (d *divider) divide(limits *Limits) *dividedLimits {
	if known, found := d.known.Load(limits); found {
		divided, _ := known.(*dividedLimits)
		return divided
	}
	divided := &dividedLimits{}
	if divided.share, divided.err = limits.part(d.share, sharePart); divided.err == nil {
		divided.lent, divided.err = limits.part(d.lent, lentPart)
	}
	if d.kept.Add(1) > maxDivided {
		d.kept.Store(0)
		d.known.Clear()
	}
	d.known.Store(limits, divided)
	return divided
}

// part returns limits of so many percent of these, rounded down. Answers show these limits, and not the part.
func (l *Limits) part(percent int64, is part) (*Limits, error) {
	all := l.All()
	for i := range all {
		less, some := shareOf(all[i], percent, 100)
		if !some {
			return nil, fmt.Errorf("%w: limit %q cannot be divided: %d %% of it are less than 1; from %d on it can", ErrInvalid, all[i].Name, percent, (100+percent-1)/percent)
		}
		all[i] = less
	}
	parts, err := Compile(all...)
	if err != nil {
		return nil, fmt.Errorf("%w: %d %% of limits: %w", ErrInvalid, percent, err)
	}
	parts.is, parts.whole = is, l
	judged := 0
	for i := range l.all {
		if l.all[i].Mode != Off {
			parts.rules[judged].limit = &l.all[i]
			judged++
		}
	}
	return parts, nil
}
