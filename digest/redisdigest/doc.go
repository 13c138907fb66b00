// Package redisdigest writes the digest of an instance into a Redis once a second, and reads those of all instances: what the
// command and the control plane look at (package digest).
//
// Each run of an instance has keys of its own in one slot of a cluster, each with a life:
//
//	rl:NAMESPACE:digest                  when each run was seen last, a sorted set
//	rl:NAMESPACE:digest:{RUN}            its digest
//	rl:NAMESPACE:digest:{RUN}:refusals   its refusals by their ids, a hash
//	rl:NAMESPACE:digest:{RUN}:records    its records, a list
package redisdigest
