package usage

import (
	"cmp"
	"strings"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/number"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pseudonym"
)

const (
	// shards is how many parts count beside each other, each a part of the tenants.
	shards = 16
	// pages is of how many minutes a slot counts at most. It is collected each second, so that there are two where one begins.
	pages = 3
	// often is how often a tenant asks in a slot that keeps its place.
	often = 2
	// maxTenant is how long the name of a tenant is that is told as counted.
	maxTenant = 1024
	// dimensions is how many there are.
	dimensions = int(ByLimit) + 1
	// maxCrossings is how many thresholds a tenant reaches in a slot, or in a minute.
	maxCrossings = 64
)

// shard counts some of the tenants. Its lock is held while one decision is counted, and while a slot takes the place of another.
type shard struct {
	mu  sync.Mutex
	now *slot
}

// slot is what was counted between two calls of Collect.
type slot struct {
	pages [pages]page
	// used is how many of them there are.
	used    int
	counted map[countedKey]*bool
	// tenants and names are how many there may be of a page and of a tenant, and notes how many of counted.
	tenants, names, notes int
}

// page is what was counted in a minute.
type page struct {
	minute   int64
	accounts map[string]*account
	// other is what found no room.
	other Numbers
}

// account is what was counted of a tenant.
type account struct {
	all   Numbers
	names map[name]*Numbers
	// of is how many names there are in each dimension.
	of [dimensions]int
	// crossings are nil where there are none.
	crossings map[crossing]int64
}

// name is one in a dimension: a text, or the hash of one. Of a limit it is the level and the name.
type name struct {
	by          Dimension
	level, text string
	hash        uint64
}

// crossing is a threshold of a limit of an owner.
type crossing struct {
	level, owner, limit string
	threshold           int
}

// countedKey is an hour of a tenant.
type countedKey struct {
	tenant string
	hour   int64
	local  bool
}

func newSlot(cfg *RecorderConfig) *slot {
	s := &slot{
		counted: make(map[countedKey]*bool), tenants: max(1, cfg.Tenants/shards), names: cfg.Names, notes: max(1, cfg.Counted/shards),
	}
	for i := range s.pages {
		s.pages[i].accounts = make(map[string]*account)
	}
	return s
}

func (n Numbers) plus(o Numbers) Numbers {
	return Numbers{
		Admitted: number.Sum(n.Admitted, o.Admitted), Refused: number.Sum(n.Refused, o.Refused),
		WouldRefuse: number.Sum(n.WouldRefuse, o.WouldRefuse), Points: number.Sum(n.Points, o.Points),
	}
}

// decisions is how many there were.
func (n Numbers) decisions() int64 { return number.Sum(n.Admitted, n.Refused) }

// names are those of a decision but that of its operation. Each text is that of the request.
type names struct {
	all [3]name
	n   int
}

func (n *names) add(one name) {
	n.all[n.n] = one
	n.n++
}

// appendOperation appends the name of the operation as long as it has room.
func appendOperation(b []byte, fields []string) []byte {
	for i, field := range fields {
		if i > 0 && len(b) < cap(b) {
			b = append(b, '+')
		}
		b = append(b, field[:min(len(field), cap(b)-len(b))]...)
	}
	return b
}

// namesOf returns the names of a decision.
func namesOf(cfg *RecorderConfig, v *event.Verdict) (n names) {
	if v.Team != "" {
		one := name{by: ByTeam, text: pseudonym.Cut(v.Team)}
		if v.HideOwners {
			one.text, one.hash = "", pseudonym.Team(cfg.Key, v.Tenant, v.Team)
		}
		n.add(one)
	}
	switch {
	case v.User == "" || cfg.Users == digest.Omitted:
	case v.HideOwners || cfg.Users == digest.Hashed:
		n.add(name{by: ByUser, hash: pseudonym.User(cfg.Key, v.Tenant, v.User)})
	default:
		n.add(name{by: ByUser, text: pseudonym.Cut(v.User)})
	}
	if v.Refused || v.WouldRefuse {
		n.add(limitOf(v))
	}
	return n
}

// limitOf returns what refused, or would have.
func limitOf(v *event.Verdict) name {
	of := name{by: ByLimit, level: v.Level, text: v.Limit}
	if v.Limit == "" {
		of.level, of.text = "", cmp.Or(v.Because, v.Outcome)
	}
	of.text = pseudonym.Cut(of.text)
	return of
}

// page returns that of a minute. Where there are too many it is the last one.
func (s *slot) page(minute int64) *page {
	for i := range s.used {
		if s.pages[i].minute == minute {
			return &s.pages[i]
		}
	}
	if s.used == len(s.pages) {
		return &s.pages[s.used-1]
	}
	s.used++
	s.pages[s.used-1].minute = minute
	return &s.pages[s.used-1]
}

// count counts a decision. It returns false if some of it is counted under [Other].
func (s *slot) count(v *event.Verdict, operation []byte, names *names, n Numbers) bool {
	p := s.page(minuteOf(v.At))
	a := s.account(p, v.Tenant)
	if a == nil {
		p.other = p.other.plus(n)
		return false
	}
	a.all = a.all.plus(n)
	all := true
	found := a.names[name{by: ByOperation, text: string(operation)}]
	if found == nil {
		found, all = a.named(s.names, name{by: ByOperation, text: string(operation)})
	}
	*found = found.plus(n)
	for _, one := range names.all[:names.n] {
		found, own := a.named(s.names, one)
		*found, all = found.plus(n), all && own
	}
	return all
}

// account returns that of a tenant, nil if there is no room for another.
func (s *slot) account(p *page, tenant string) *account {
	tenant = pseudonym.Cut(tenant)
	a := p.accounts[tenant]
	if a == nil && len(p.accounts) < s.tenants {
		a = &account{names: make(map[name]*Numbers)}
		p.accounts[strings.Clone(tenant)] = a
	}
	return a
}

// named returns the numbers of a name. It returns false if these are those of all that find no room.
func (a *account) named(room int, of name) (*Numbers, bool) {
	found, own := a.names[of], true
	if found == nil && !a.hasRoom(room, of.by) {
		of, own = name{by: of.by, text: Other}, false
		found = a.names[of]
	}
	if found == nil {
		found = new(Numbers)
		of.level, of.text = strings.Clone(of.level), strings.Clone(of.text)
		a.names[of] = found
		a.count(of, 1)
	}
	return found, own
}

// count counts a name that has come or gone, but none that stands for others.
func (a *account) count(of name, n int) {
	if of.text != Other {
		a.of[of.by] += n
	}
}

// hasRoom reports whether there is room for another name in a dimension. Each has an eighth for itself, so that a client that has many operations takes
// the names of no users and limits.
func (a *account) hasRoom(room int, by Dimension) bool {
	own, taken := room/8, 0
	for _, n := range a.of[ByOperation:] {
		taken += max(n, own)
	}
	return len(a.names) < room && (a.of[by] < own || taken < room)
}

// reached counts a threshold, of which no more than a sample is told anyway.
func (s *slot) reached(tenant string, at time.Time, of crossing) {
	if a := s.account(s.page(minuteOf(at)), tenant); a != nil {
		a.cross(of, 1)
	}
}

// cross adds to how often a threshold was reached. Where there is no room it is not counted.
func (a *account) cross(of crossing, times int64) {
	if a.crossings == nil {
		a.crossings = make(map[crossing]int64)
	}
	if _, known := a.crossings[of]; !known && len(a.crossings) >= maxCrossings {
		return
	}
	a.crossings[of] = number.Sum(a.crossings[of], times)
}

// note notes an hour of a tenant in which was counted. It returns false if there is no room.
func (s *slot) note(c *event.UsageCounted) bool {
	const minutes = 60
	key := countedKey{tenant: c.Tenant, hour: minuteOf(c.At) / minutes, local: c.Local}
	noted := s.counted[key]
	if noted == nil {
		if len(s.counted) >= s.notes {
			return false
		}
		noted = new(bool)
		key.tenant = strings.Clone(key.tenant)
		s.counted[key] = noted
	}
	*noted = true
	return true
}

// reset makes the slot empty. Tenants and names that come often keep their place, so that others cannot take it and counting them allocates
// nothing.
func (s *slot) reset() {
	for i := range s.used {
		p := &s.pages[i]
		p.other = Numbers{}
		full := len(p.accounts) > s.tenants/2
		for tenant, a := range p.accounts {
			if full && a.all.decisions() < often {
				delete(p.accounts, tenant)
				continue
			}
			a.reset(s.names)
		}
	}
	s.used = 0
	full := len(s.counted) > s.notes/2
	for key, noted := range s.counted {
		if full && !*noted {
			delete(s.counted, key)
		}
		*noted = false
	}
}

func (a *account) reset(room int) {
	full := len(a.names) > room/2
	for of, n := range a.names {
		if full && n.decisions() < often {
			delete(a.names, of)
			a.count(of, -1)
			continue
		}
		*n = Numbers{}
	}
	a.all, a.crossings = Numbers{}, nil
}
