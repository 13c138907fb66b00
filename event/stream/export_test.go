package stream

import "hash/maphash"

// LaneOf is under which hash the room of a tenant is counted.
func (q *Queue) LaneOf(tenant string) uint8 { return uint8(maphash.String(q.seed, tenant) % lanes) }
