package edge

import "sync"

// occupancy counts what is inside, by the networks that it comes from. It is safe for concurrent use. What it remembers
// grows with what is inside alone.
type occupancy struct {
	// room is how much fits in all, and most how much of one client.
	room, most int

	mu     sync.Mutex
	inside int
	of     map[string]int
}

// entry is the answer to who wants to come in.
type entry uint8

const (
	entered entry = iota
	// crowded says that the network has as many inside as it may.
	crowded
	// roomless says that the network has as many inside as there is room for others.
	roomless
)

// unbounded is the room of None.
const unbounded = int(^uint(0) >> 2)

func newOccupancy(room, most int) *occupancy {
	o := &occupancy{room: room, most: most, of: map[string]int{}}
	if room == None {
		o.room = unbounded
	}
	if most == None {
		o.most = unbounded / siteOccupancy
	}
	return o
}

// enter lets n more in, if there is room. A network never has more inside than there is room left, so that whoever comes
// first leaves half to all others (A. Choudhury and E. Hahne, "Dynamic queue length thresholds for shared-memory packet
// switches", 1998). A name may be empty.
func (o *occupancy) enter(client, site string, n int) entry {
	o.mu.Lock()
	defer o.mu.Unlock()
	free := o.room - o.inside
	for _, bound := range [...]struct {
		name string
		most int
	}{{client, o.most}, {site, siteOccupancy * o.most}} {
		inside := o.of[bound.name]
		switch {
		case bound.name == "" && free < n:
			return roomless
		case bound.name == "":
		case inside+n > bound.most:
			return crowded
		case inside+n > free:
			return roomless
		}
	}
	o.inside += n
	o.count(client, n)
	o.count(site, n)
	return entered
}

// leave takes n out that have entered.
func (o *occupancy) leave(client, site string, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.inside -= n
	o.count(client, -n)
	o.count(site, -n)
}

func (o *occupancy) count(name string, n int) {
	if name == "" {
		return
	}
	if o.of[name] += n; o.of[name] == 0 {
		delete(o.of, name)
	}
}

// total is how much is inside.
func (o *occupancy) total() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.inside
}
