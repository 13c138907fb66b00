package placement

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// Bounds of a [Map].
const (
	// MaxStores is how many stores a map has at most, MaxPins how many pins, and MaxBefore how many maps before it.
	MaxStores = 256
	MaxPins   = 10_000
	MaxBefore = 32
	// MaxDocument is how many bytes a map has at most as JSON.
	MaxDocument = 4 << 20

	maxName    = 64
	maxAddress = 2048
	maxTenant  = 512
	// maxGeneration is the largest one that a store can remember.
	maxGeneration = 1<<53 - 1
)

// Map says which stores there are, and which tenants are in which. As JSON it is what a [Record] keeps.
type Map struct {
	// Generation is from 1 on. A map of a larger one takes the place of another.
	Generation uint64 `json:"generation"`
	// Candidates is how many stores a tenant may be in: 1 to the number of stores. It is in the first of them that takes it in; where none does,
	// it is in none, and its limits fail as their fail modes say. So no tenant ever touches more stores than that.
	Candidates int `json:"candidates"`
	// Stores are those that there are, at least one.
	Stores []Member `json:"stores"`
	// Pins are the stores of single tenants, by their names, whatever hashing says.
	Pins map[string]string `json:"pins,omitempty"`
	// WhenLost says what a lost store leaves of windows, and of token buckets that take more than an hour to be full. Others are empty.
	WhenLost WhenLost `json:"whenLost,omitempty"`
	// Before are the maps before this one by which a tenant may have something elsewhere, in any order. A map may leave when all is full again that was spent
	// under it: after the longest time in which a limit comes back. All stores that one names are among Stores.
	Before []Earlier `json:"before,omitempty"`
}

// Member is a store in a map.
type Member struct {
	// Name is 1 to 64 characters of A-Z a-z 0-9 _ . and -. Tenants are placed by it, and not by the address.
	Name string `json:"name"`
	// Address is what the store is opened by. It is for whatever opens stores, and may be empty.
	Address string `json:"address,omitempty"`
	// Draining says that the store takes nobody in, and that its tenants leave it when they next come.
	Draining bool `json:"draining,omitempty"`
	// Lost is when the store was lost with all that it had, at the latest: no time that lies ahead. It takes nobody in and is not asked for anything.
	Lost *time.Time `json:"lost,omitempty"`
}

// Earlier is a map that was, without what does not decide where tenants were.
type Earlier struct {
	Candidates int               `json:"candidates"`
	Stores     []string          `json:"stores"`
	Pins       map[string]string `json:"pins,omitempty"`
	// Lost is when stores were lost since then, with what they had by this map. A store of that name may be there again, as another one.
	Lost map[string]time.Time `json:"lost,omitempty"`
}

// WhenLost is what a lost store leaves of limits of which nobody knows what was spent.
type WhenLost string

const (
	// Empty says that all of it was spent when the store was lost. It is the default.
	Empty WhenLost = "empty"
	// Full says that nothing was.
	Full WhenLost = "full"
)

// ErrMap is what every error of [Parse] and [Map.Check] is.
var ErrMap = errors.New("placement: the map is wrong")

// Parse reads a map. Every mistake in it is reported at once.
func Parse(document []byte) (*Map, error) {
	if len(document) > MaxDocument {
		return nil, fmt.Errorf("%w: %d bytes; at most %d fit", ErrMap, len(document), MaxDocument)
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.DisallowUnknownFields()
	m := new(Map)
	if err := decoder.Decode(m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMap, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: something follows it", ErrMap)
	}
	return m, m.Check()
}

// Check returns every mistake in the map at once.
func (m *Map) Check() error {
	var mistakes []error
	fail := func(format string, args ...any) {
		mistakes = append(mistakes, fmt.Errorf("%w: "+format, append([]any{ErrMap}, args...)...))
	}
	if m.Generation < 1 || m.Generation > maxGeneration {
		fail("generation %d: 1 to %d fit", m.Generation, uint64(maxGeneration))
	}
	if len(m.Stores) < 1 || len(m.Stores) > MaxStores {
		fail("%d stores: 1 to %d fit", len(m.Stores), MaxStores)
	}
	if m.WhenLost != "" && m.WhenLost != Empty && m.WhenLost != Full {
		fail("whenLost is %.40q: empty or full fits", m.WhenLost)
	}
	if len(m.Before) > MaxBefore {
		fail("%d maps before this one: at most %d fit", len(m.Before), MaxBefore)
	}
	names := make([]string, 0, len(m.Stores))
	takes := false
	for i := range m.Stores {
		store := &m.Stores[i]
		switch {
		case !literal(store.Name):
			fail("the store %.80q: 1 to %d characters of A-Z a-z 0-9 _ . - fit", store.Name, maxName)
		case slices.Contains(names, store.Name):
			fail("two stores %q", store.Name)
		case len(store.Address) > maxAddress:
			fail("the address of %s has %d bytes: at most %d fit", store.Name, len(store.Address), maxAddress)
		case store.Lost != nil && store.Lost.UnixMilli() < 1:
			fail("%s was lost at %v", store.Name, store.Lost)
		}
		names = append(names, store.Name)
		takes = takes || !store.Draining && store.Lost == nil
	}
	if !takes {
		fail("no store takes anybody in")
	}
	for tenant, name := range m.Pins {
		if at := slices.Index(names, name); at >= 0 && m.Stores[at].Draining {
			fail("%.80q is pinned to %s, which drains: pin it to another store", tenant, name)
			break
		}
	}
	checkPlaces(fail, "", m.Candidates, names, names, m.Pins)
	for i, b := range m.Before {
		where := fmt.Sprintf("map %d before it: ", i+1)
		checkPlaces(fail, where, b.Candidates, b.Stores, names, b.Pins)
		for at := range m.Stores {
			if store := &m.Stores[at]; store.Lost != nil && slices.Contains(b.Stores, store.Name) && b.Lost[store.Name].IsZero() {
				fail("%sthe store %s was lost since: say when, among those that it has lost", where, store.Name)
			}
		}
	}
	return errors.Join(mistakes...)
}

// checkPlaces checks what says where tenants are: stores among the known ones, and pins among these.
func checkPlaces(fail func(string, ...any), where string, candidates int, stores, known []string, pins map[string]string) {
	if candidates < 1 || candidates > len(stores) {
		fail("%s%d candidates of %d stores: 1 to as many as there are stores fit", where, candidates, len(stores))
	}
	for _, name := range stores {
		if !slices.Contains(known, name) {
			fail("%sthe store %.80q is not among the stores of the map: keep it there, draining or lost", where, name)
		}
	}
	if len(pins) > MaxPins {
		fail("%s%d pins: at most %d fit", where, len(pins), MaxPins)
	}
	for tenant, name := range pins {
		if len(tenant) > maxTenant || !slices.Contains(stores, name) {
			fail("%sthe pin of %.80q to %.80q: a tenant of at most %d bytes and a store of the map fit", where, tenant, name, maxTenant)
			return
		}
	}
}

// clone returns a map that has nothing in common with this one.
func (m *Map) clone() *Map {
	c := *m
	c.Stores, c.Pins, c.Before = slices.Clone(m.Stores), maps.Clone(m.Pins), slices.Clone(m.Before)
	for i := range c.Stores {
		if lost := c.Stores[i].Lost; lost != nil {
			at := *lost
			c.Stores[i].Lost = &at
		}
	}
	for i := range c.Before {
		b := &c.Before[i]
		b.Stores, b.Pins, b.Lost = slices.Clone(b.Stores), maps.Clone(b.Pins), maps.Clone(b.Lost)
	}
	return &c
}

// same reports whether another map says the same.
func (m *Map) same(other *Map) bool {
	// As JSON, in which times are the same that are written differently, and nothing is as good as empty.
	a, _ := json.Marshal(m)
	b, _ := json.Marshal(other)
	return bytes.Equal(a, b)
}

// earlier is what the map is for those after it. Stores that draw nobody are none of it, and nor is who is pinned to one that was lost: they were nowhere.
func (m *Map) earlier() Earlier {
	e := Earlier{Candidates: m.Candidates, Pins: maps.Clone(m.Pins)}
	maps.DeleteFunc(e.Pins, func(_, name string) bool {
		return slices.ContainsFunc(m.Stores, func(s Member) bool { return s.Name == name && s.Lost != nil })
	})
	for i := range m.Stores {
		if !m.Stores[i].Draining && m.Stores[i].Lost == nil {
			e.Stores = append(e.Stores, m.Stores[i].Name)
		}
	}
	e.Candidates = min(e.Candidates, len(e.Stores))
	return e
}

func literal(name string) bool {
	if name == "" || len(name) > maxName {
		return false
	}
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '.', c == '-':
		default:
			return false
		}
	}
	return true
}
