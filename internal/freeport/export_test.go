package freeport

// Lowest is the lowest port that is reserved.
const Lowest = lowest

// LeavesFrom is where the system says from which ports connections leave.
const LeavesFrom = leavesFrom

var (
	// ErrNoneLeft says that no port is left.
	ErrNoneLeft = errNoneLeft
	// HighestHere is the highest port that is reserved on a machine.
	HighestHere = highestHere
	// AddressOf is the address at a port.
	AddressOf = address
)

// Pool is a range of ports by a file of locks.
type Pool struct{ p pool }

// NewPool returns one of which nothing is reserved by this process.
func NewPool(path string, low, high int) *Pool {
	return &Pool{pool{path: path, low: low, high: high, mine: map[int]bool{}}}
}

// Take reserves ports.
func (p *Pool) Take(n int) ([]int, error) { return p.p.take(n) }
