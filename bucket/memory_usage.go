package bucket

import (
	"strconv"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// counting is the room that a shard counts usage in.
type counting struct {
	series []series
	// hourName is the name of an hour, so that a take need not make it.
	hour     int64
	hourName string
}

// countTake counts an admitted take. Whoever calls it makes room afterwards.
func (s *shard) countTake(tenant tenantKey, take *Take, now int64) {
	c := &s.counting
	u := newUsage(take.Tenant, c.series[:0])
	u.of(take)
	u.hour = now - now%state.CountHour
	if c.hourName == "" || c.hour != u.hour {
		c.hour, c.hourName = u.hour, strconv.FormatInt(u.hour/state.CountHour, 10)
	}
	var first entryKey
	for i := range u.all {
		a := u.address(i, c.hourName)
		key := s.keyOf(tenant, &a)
		if i == 0 {
			first = key
		}
		s.countUnder(&key, &first, &u, i, now)
	}
	clear(u.all)
	c.series = u.all
}

// countUnder counts one series, whose name is listed under the first key when it is new.
func (s *shard) countUnder(key, first *entryKey, u *usage, i int, now int64) {
	at, e := s.find(key, now)
	value, expires := s.valueOf(e), int64(0)
	if e == nil {
		value, expires = state.NewCount(u.mark), state.CountExpiry(u.hour, now)
		if name := u.stored(i); i > 0 && !s.list(first, name, now) {
			return
		} else if i == 0 && name != "" {
			value, _ = state.ListName(value, name)
		}
	}
	size := len(value)
	value = u.all[i].numbers.Add(value, u.hour, now)
	if e == nil || len(value) != size {
		s.put(key, at, value, expires)
	}
}

// list adds the name of a series to what is kept under the first key. It returns false if there is no room.
func (s *shard) list(first *entryKey, name string, now int64) bool {
	at, e := s.find(first, now)
	value, ok := state.ListName(s.valueOf(e), name)
	if ok && e != nil {
		s.put(first, at, value, 0)
	}
	return ok
}
