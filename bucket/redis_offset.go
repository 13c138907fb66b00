package bucket

import (
	"sync/atomic"
	"time"
)

const (
	clusterSlots = 16384
	// slotsPerGroup is how many neighbouring slots share an estimate: they are usually on one node.
	slotsPerGroup = 64
)

// offsets estimates the clock of each node of Redis, from the replies it gives. A client's clock
// decides nothing; the estimate only tells a script until when its caller waits.
type offsets struct {
	start  time.Time
	clock  func() time.Time
	groups []offset
}

// offset is the lowest that the Redis time at the start of the process can have been, in Unix
// milliseconds; zero while nothing is known.
type offset struct {
	low atomic.Int64
}

func newOffsets(cluster bool, clock func() time.Time) offsets {
	n := 1
	if cluster {
		n = clusterSlots / slotsPerGroup
	}
	return offsets{start: time.Now(), clock: clock, groups: make([]offset, n)}
}

// group returns which estimate holds for the tenant.
func (o *offsets) group(tenant string) int {
	if len(o.groups) == 1 {
		return 0
	}
	return int(crc16(segment(tenant))) % clusterSlots / slotsPerGroup
}

// applyBefore returns the Redis time at the deadline, or 0 if the clock of the node is not known.
func (o *offsets) applyBefore(group int, deadline time.Time) int64 {
	low := o.groups[group].low.Load()
	if low == 0 {
		return 0
	}
	return low + deadline.Sub(o.start).Milliseconds()
}

// now returns the Redis time as it is estimated: at the earliest, or by the clock of this process if
// nothing is known.
func (o *offsets) now(group int) int64 {
	low := o.groups[group].low.Load()
	if low == 0 {
		return o.clock().UnixMilli()
	}
	return low + time.Since(o.start).Milliseconds()
}

// learn takes in that the script ran at the Redis time now, at some moment between sent and received.
// Each reply gives a lowest and a highest offset; the best lowest one is kept until a reply
// contradicts it, because a clock was set or another node answers.
func (o *offsets) learn(group int, sent, received time.Time, now int64, afresh bool) {
	estimate := &o.groups[group].low
	lowest := now - ceilMilliseconds(received.Sub(o.start))
	highest := now + 1 - sent.Sub(o.start).Milliseconds()
	known := estimate.Load()
	if afresh || known == 0 || lowest > known || highest < known {
		estimate.Store(lowest)
	}
}

func ceilMilliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// crc16 is the CRC-16/XMODEM by which Redis Cluster assigns hash tags to slots.
func crc16(tag string) uint16 {
	var crc uint16
	for i := range len(tag) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^tag[i]]
	}
	return crc
}

var crcTable = func() (table [256]uint16) {
	const polynomial = 0x1021
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ polynomial
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()
