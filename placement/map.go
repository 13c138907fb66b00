package placement

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Bounds of a [Map].
const (
	// MaxStores is how many stores a map has at most, and MaxPins how many pins.
	MaxStores = 256
	MaxPins   = 10_000
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
}

// Member is a store in a map.
type Member struct {
	// Name is 1 to 64 characters of A-Z a-z 0-9 _ . and -. Tenants are placed by it, and not by the address.
	Name string `json:"name"`
	// Address is what the store is opened by. It is for whatever opens stores, and may be empty.
	Address string `json:"address,omitempty"`
	// Draining says that the store takes nobody in. It stays open, so that what was charged in it can be settled.
	Draining bool `json:"draining,omitempty"`
	// Lost says that the store does not answer any more. It takes nobody in and is not asked for anything. Those who have only lost candidates are in no store.
	Lost bool `json:"lost,omitempty"`
}

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
		}
		names = append(names, store.Name)
		takes = takes || !store.Draining && !store.Lost
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
	m.checkPlaces(fail, names)
	return errors.Join(mistakes...)
}

// checkPlaces checks what says where tenants are, among stores of these names.
func (m *Map) checkPlaces(fail func(string, ...any), names []string) {
	if m.Candidates < 1 || m.Candidates > len(names) {
		fail("%d candidates of %d stores: 1 to as many as there are stores fit", m.Candidates, len(names))
	}
	if len(m.Pins) > MaxPins {
		fail("%d pins: at most %d fit", len(m.Pins), MaxPins)
	}
	for tenant, name := range m.Pins {
		if len(tenant) > maxTenant || !slices.Contains(names, name) {
			fail("the pin of %.80q to %.80q: a tenant of at most %d bytes and a store of the map fit", tenant, name, maxTenant)
			return
		}
	}
}

// clone returns a map that has nothing in common with this one.
func (m *Map) clone() *Map {
	c := *m
	c.Stores, c.Pins = slices.Clone(m.Stores), maps.Clone(m.Pins)
	return &c
}

// same reports whether another map says the same.
func (m *Map) same(other *Map) bool {
	// As JSON, in which nothing is as good as empty.
	a, _ := json.Marshal(m)
	b, _ := json.Marshal(other)
	return bytes.Equal(a, b)
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
