package bucket

import (
	"context"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// ShardStore is a [Store] that can be a shard: it keeps what the shard holds of limits. [Memory] and [Redis] are such. In what it keeps for a shard it does not leave anything of its
// own buckets.
type ShardStore interface {
	Store
	// Shard takes from what the shard holds of a tenant, and does what belongs to its exchanges, each in one step. The errors are those of [Store].
	Shard(ctx context.Context, call ShardCall) (ShardAnswer, error)
}

var (
	_ ShardStore = (*Memory)(nil)
	_ ShardStore = (*Redis)(nil)
)

// ShardCall is what an instance tells a shard. It is opaque: [Sharded] makes it.
type ShardCall struct {
	tenant string
	kind   int64
	says   state.ShardCall
	// limits and answer are packed, n is how many limits there are.
	limits, answer []byte
	n              int
	// marker is of the receipt of what is put back.
	marker address
	room   []state.ShardLevel
}

// Tenant is whose budget is shared.
func (c *ShardCall) Tenant() string { return c.tenant }

// ShardAnswer is what a shard answers to a [ShardCall]. It is opaque.
type ShardAnswer struct {
	state.ShardAnswer
	// now is the time of the shard, and first says that something was put back for the first time.
	now   int64
	first bool
}

// shardAddress is where a shard keeps what it holds of the bucket of a tenant.
func shardAddress() address { return address{kind: shardKey, name: "t"} }

// Shard implements [ShardStore].
func (s *core) Shard(ctx context.Context, call ShardCall) (ShardAnswer, error) {
	c := s.newCall(call.tenant, &s.scripts.Shard, 2, 4)
	c.key(shardAddress())
	if call.kind == state.ShardBack {
		c.key(call.marker)
	}
	c.values(nil, call.kind, 0, nil)
	c.arg(call.says.Append(nil))
	c.arg(call.limits)
	c.arg(call.answer)
	reply, err := c.do(ctx)
	if err != nil {
		return ShardAnswer{}, err
	}
	a := ShardAnswer{now: reply.now, first: reply.outcome == state.Applied}
	var ok bool
	if a.ShardAnswer, ok = state.ReadShard(reply.rest, call.kind, call.n, call.room); !ok {
		return a, fmt.Errorf("%w: %w", ErrAmbiguous, errReply)
	}
	return a, nil
}
