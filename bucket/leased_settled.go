package bucket

import "sync"

// settledTakes are the takes of one lease of a bucket that were settled or declined, so that nothing comes back twice: a bit for each, in pages that are made when
// the first of their takes is settled. Receipts have it, and not who leases the bucket alone: it is known after the lease as well. The zero value is of none, and takes
// next to no memory. It is safe for concurrent use.
type settledTakes struct {
	mu sync.Mutex
	// pages are a ring, nil before anything was settled, and newest is the number of the last one.
	pages  []*settledPage
	newest int64
}

// settledPage has a bit for each of so many takes that follow each other.
type settledPage [settledPerPage / 64]uint64

const (
	// settledPages and settledPerPage bound how many takes back something is given back: a quarter of a million, in 32 KiB.
	settledPages   = 64
	settledPerPage = 4096
)

// add remembers a take by its number among those of the lease, and returns false if it was there, or is so far back that nobody knows. Of a take under no lease
// nothing is remembered: whoever was asked for it knows.
func (s *settledTakes) add(take int64) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	number := take / settledPerPage
	if number <= s.newest-settledPages {
		return false
	}
	if s.pages == nil {
		s.pages = make([]*settledPage, settledPages)
	}
	if number > s.newest {
		for forgotten := range min(number-s.newest, settledPages) {
			s.pages[(number-forgotten)%settledPages] = nil
		}
		s.newest = number
	}
	page := &s.pages[number%settledPages]
	if *page == nil {
		*page = &settledPage{}
	}
	word, bit := &(*page)[take%settledPerPage/64], uint64(1)<<(take%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}
