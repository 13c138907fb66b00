// Package occupancy counts what is inside at once, by the networks that it comes from, and leaves room for others.
package occupancy

import "sync"

// Room counts what is inside, by the networks that it comes from. It is safe for concurrent use. What it remembers
// grows with what is inside alone.
type Room struct {
	// room is how much fits in all, and most how much of one client.
	room, most int

	mu     sync.Mutex
	inside int
	of     map[string]int
}

// Entry is the answer to who wants to come in.
type Entry uint8

// What becomes of who wants to come in.
const (
	// Entered says that it is inside.
	Entered Entry = iota
	// Crowded says that the network has as many inside as it may.
	Crowded
	// Roomless says that the network has as many inside as there is room for others.
	Roomless
)

// siteFactor is how much more of one site fits than of one client.
const siteFactor = 4

// unbounded is the room where there is no bound.
const unbounded = int(^uint(0) >> 2)

// New returns an empty room for so much in all, and so much of one client. A negative number is no bound.
func New(room, most int) *Room {
	r := &Room{room: room, most: most, of: map[string]int{}}
	if room < 0 {
		r.room = unbounded
	}
	if most < 0 {
		r.most = unbounded / siteFactor
	}
	return r
}

// Enter lets n more in, if there is room. A network never has more inside than there is room left, so that whoever comes
// first leaves half to all others (A. Choudhury and E. Hahne, "Dynamic queue length thresholds for shared-memory packet
// switches", 1998). A name may be empty.
func (r *Room) Enter(client, site string, n int) Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	free := r.room - r.inside
	for _, bound := range [...]struct {
		name string
		most int
	}{{client, r.most}, {site, siteFactor * r.most}} {
		inside := r.of[bound.name]
		switch {
		case bound.name == "" && free < n:
			return Roomless
		case bound.name == "":
		case inside+n > bound.most:
			return Crowded
		case inside+n > free:
			return Roomless
		}
	}
	r.inside += n
	r.count(client, n)
	r.count(site, n)
	return Entered
}

// Leave takes n out that have entered.
func (r *Room) Leave(client, site string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside -= n
	r.count(client, -n)
	r.count(site, -n)
}

func (r *Room) count(name string, n int) {
	if name == "" {
		return
	}
	if r.of[name] += n; r.of[name] == 0 {
		delete(r.of, name)
	}
}

// Total is how much is inside.
func (r *Room) Total() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.inside
}
