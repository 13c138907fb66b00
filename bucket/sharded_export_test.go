package bucket

import (
	"context"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// The kinds of calls of a shard.
const (
	ShardOfferKind = state.ShardOffer
	ShardPutKind   = state.ShardPut
	ShardTakeKind  = state.ShardTake
	ShardBackKind  = state.ShardBack
)

// ShardKind is what a call does.
func ShardKind(call *ShardCall) int64 { return call.kind }

// ShardGives reports whether somebody was told what the shard holds, and not only that he may not have it.
func ShardGives(call *ShardCall, a *ShardAnswer) bool {
	return call.kind != state.ShardBack && (a.Status == state.ShardDone || a.Status == state.ShardShort)
}

// ShardName is how a shard is called by its record.
func ShardName(record []byte) string { return string(record[:min(len(record), shardNameEnd)]) }

// SetShardClock changes when a call says that the message was stored.
func SetShardClock(call *ShardCall, at int64) { call.says.Clock = at }

// SetShardLeast changes what a call says of the clock of the shard.
func SetShardLeast(call *ShardCall, least int64) { call.says.Least = least }

// ShardNow is the time of a store.
func ShardNow(m *Memory) int64 { return m.clock().UnixMilli() }

// LeasingOf returns the unit, capacity and rate of the only limit.
func LeasingOf(limits *Limits) (unit, capacity, rate int64) { return limits.rules[0].Leasing() }

// ShardRecord is the record of a shard, nil if there is none.
func ShardRecord(m *Memory, tenant string) []byte {
	record, _ := m.read(context.Background(), tenant, shardAddress())
	return record
}

// HomeRecords returns what home has stored of the bucket of a tenant, and of who leases parts of it.
func HomeRecords(m *Memory, tenant string) (level, holdings []byte) {
	level, _ = m.read(context.Background(), tenant, bucketAddress(&Owner{}, ""))
	holdings, _ = m.read(context.Background(), tenant, holdingsAddress(&Owner{}))
	return level, holdings
}

// SetShardRecord puts another one in its place.
func SetShardRecord(m *Memory, tenant string, record []byte) {
	if record == nil {
		_ = m.remove(context.Background(), tenant, []address{shardAddress()})
		return
	}
	s, key, now := m.lock(tenant)
	defer s.mu.Unlock()
	at := shardAddress()
	in := s.keyOf(key, &at)
	s.write(&in, &state.Write{Value: record, Expiry: now + 60_000}, now)
}

const (
	// A name follows the version and the number of limits.
	shardNameEnd   = 2 + 8
	shardNumberAt  = 2 + 16 + 2 + 6
	shardPendingAt = 2 + 16
	shardHeadSize  = shardNumberAt + 9*6
	shardPartsAt   = shardHeadSize + 2 + 5 + 2
)

// ShardPending reports whether an exchange is under way by a record.
func ShardPending(record []byte) bool { return record[shardPendingAt] == 1 }

// KeepShardParts makes the capacity, rate and level those of a record of before.
func KeepShardParts(m *Memory, tenant string, before []byte) {
	record := ShardRecord(m, tenant)
	if len(record) != len(before) || string(record[2:10]) != string(before[2:10]) {
		return
	}
	copy(record[shardPartsAt:shardPartsAt+21], before[shardPartsAt:])
	SetShardRecord(m, tenant, record)
}

// AdvanceShardNumber makes the number of the exchange one more.
func AdvanceShardNumber(m *Memory, tenant string) {
	record := ShardRecord(m, tenant)
	n := state.ReadUint(record[shardNumberAt:], 6)
	copy(record[shardNumberAt:], state.AppendUint(nil, 6, n+1))
	SetShardRecord(m, tenant, record)
}

// ShardHolding is what a shard holds of its only limit.
type ShardHolding struct{ Capacity, Rate, Level int64 }

// ShardHolds returns that at a time of the shard.
func ShardHolds(m *Memory, tenant string, now int64) (h ShardHolding) {
	record := ShardRecord(m, tenant)
	number := func(at, size int) int64 { return state.ReadUint(record[at:], size) }
	if len(record) == 0 || now >= number(shardNumberAt+6, 6) {
		return h
	}
	updated := number(shardNumberAt+12, 6)
	h = ShardHolding{number(shardPartsAt, 7), number(shardPartsAt+7, 7), number(shardPartsAt+14, 7)}
	h.Level = min(h.Capacity, h.Level+h.Rate*max(0, now-updated)*999/1000)
	return h
}
