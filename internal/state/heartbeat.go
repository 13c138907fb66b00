package state

import (
	"fmt"
	"strings"
)

// The sizes of what is noted of an instance.
const (
	instanceNameSize = 8
	instanceSize     = instanceNameSize + DateSize
	// InstancesSize is that of the number of instances in a reply, and BeatSize of all that it tells of them.
	InstancesSize = 2
	BeatSize      = InstancesSize + 1 + InstancesSize
	// Leases is what the names of instances begin with that can lease. Of those of older versions, which are random, one in 16 million does.
	Leases = "ls1"
)

// Heartbeat is heartbeat.lua: it notes that an instance lives, counts those that do and those of them that can lease, and says whether it was one before.
// Errors are as of [Settle].
func Heartbeat(c Call) (Reply, error) {
	return c.run(2, false, func(r *Reply) error {
		instance := c.Args[1]
		if len(instance) != instanceNameSize {
			return fmt.Errorf("%w: an instance", errMalformed)
		}
		var living []byte
		before := byte(0)
		for rest := string(c.Values[0]); len(rest) >= instanceSize; rest = rest[instanceSize:] {
			heard := ReadUint(rest[instanceNameSize:], DateSize)
			// What a clock that was set back has noted lies in the future.
			if heard <= c.Now-c.extra || heard > c.Now+c.extra {
				continue
			}
			if rest[:instanceNameSize] == instance {
				before = 1
			} else {
				living = append(living, rest[:instanceSize]...)
			}
		}
		living = AppendUint(append(living, instance...), DateSize, c.Now)
		living = living[max(0, len(living)-(MaxInstances+1)*instanceSize):]
		leasing := 0
		for i := 0; i < len(living); i += instanceSize {
			if strings.HasPrefix(string(living[i:i+instanceNameSize]), Leases) {
				leasing++
			}
		}
		r.Text = AppendUint(append(AppendUint(c.reply(Applied), InstancesSize, len(living)/instanceSize), before), InstancesSize, leasing)
		r.Writes = []Write{{Value: living, Expiry: c.Now + c.extra}}
		return nil
	})
}
