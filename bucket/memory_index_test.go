package bucket_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// indexModel is an index, and the tag of each place that it has to know.
type indexModel struct {
	index bucket.Index
	tags  map[uint32]uint64
	next  uint32
}

// do inserts a place under the tag, or removes or moves another, as the byte says.
func (m *indexModel) do(t *testing.T, op byte, tag uint64) {
	t.Helper()
	one := func() (uint32, bool) {
		for at := range m.tags {
			return at, true
		}
		return 0, false
	}
	switch at, ok := one(); {
	case op%4 < 2 || !ok:
		if m.index.Insert(tag, m.next) {
			m.tags[m.next] = tag
		} else {
			n := 0
			for _, is := range m.tags {
				if is == tag {
					n++
				}
			}
			// Whoever is turned away meets more than there can be by chance.
			require.Greater(t, n, 100)
		}
		m.next++
	case op%4 == 2:
		m.index.Remove(m.tags[at], at)
		delete(m.tags, at)
	default:
		m.index.Move(m.tags[at], at, m.next)
		m.tags[m.next] = m.tags[at]
		delete(m.tags, at)
		m.next++
	}
}

func (m *indexModel) check(t *testing.T) {
	t.Helper()
	for at, tag := range m.tags {
		require.True(t, m.index.Has(tag, at), "%x in %d", tag, at)
	}
	places, _ := m.index.Size()
	require.Len(t, m.tags, places)
}

func FuzzTheIndexOfAMemoryKnowsWhatAMapDoes(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 1, 1, 2, 0, 0, 3, 0, 0, 2, 0, 0}, uint16(3))
	f.Add(slices.Repeat([]byte{0, 7, 7}, 300), uint16(1))
	f.Add(slices.Repeat([]byte{1, 0xff, 0xff, 3, 0, 0, 2, 1, 1}, 100), uint16(0xff))
	f.Fuzz(func(t *testing.T, ops []byte, spread uint16) {
		m := indexModel{tags: map[uint32]uint64{}}
		for len(ops) >= 3 {
			// The bits by which leaves are told apart, and those by which slots are.
			tag := uint64(binary.BigEndian.Uint16(ops[1:])&spread) * 0x1003 % (1 << bucket.TagBits)
			m.do(t, ops[0], tag)
			ops = ops[3:]
		}
		m.check(t)
		for at, tag := range maps.Clone(m.tags) {
			m.index.Remove(tag, at)
			delete(m.tags, at)
		}
		m.check(t)
		_, leaves := m.index.Size()
		require.LessOrEqual(t, leaves, 1, "what is empty has one leaf at most")
	})
}

func TestTheIndexOfAMemoryKnowsWhatAMapDoes(t *testing.T) {
	t.Parallel()
	for _, bits := range []int{4, 8, bucket.TagBits} {
		t.Run(fmt.Sprint(bits, " bits"), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(3, uint64(bits)))
			m := indexModel{tags: map[uint32]uint64{}}
			for phase := range 4 {
				for range 5000 {
					// It grows, then it shrinks.
					op := byte(random.IntN(2))
					if random.IntN(4) > 0 == (phase%2 == 1) {
						op = 2 + byte(random.IntN(2))
					}
					m.do(t, op, random.Uint64N(1<<bits)<<(bucket.TagBits-bits))
				}
				m.check(t)
			}
		})
	}
}

// TestAKeyNeverSeesTheStateOfAnother has keys whose hashes meet, and which are made of the same letters.
func TestAKeyNeverSeesTheStateOfAnother(t *testing.T) {
	t.Parallel()
	store := bucket.NewMemory(bucket.MemoryConfig{Clock: newClock().now})
	store.HashOnly(2)
	limits := compile(t, bucket.Limit{Name: "day", Capacity: 1000, Period: 24 * time.Hour})
	random, spent := rand.New(rand.NewPCG(5, 6)), map[string]int64{}
	names := []string{"a", "b", "aa", "ab", "ba", "1:a", "~a", "~a~", "\x00", "a\x00"}
	one := func() string { return names[random.IntN(len(names))] }
	// Some share a shard, whatever the seed.
	tenant := func() string { return one() + fmt.Sprint(random.IntN(20)) }
	for range 20_000 {
		owner, candidate := bucket.Owner{Level: bucket.Level(random.IntN(4))}, random.IntN(4) == 0
		if owner.Level != bucket.Tenant {
			owner.Name = one()
		}
		if owner.Level == bucket.Operation && random.IntN(2) == 0 {
			owner.Part = one()
		}
		take := bucket.Take{Tenant: tenant(), Buckets: []bucket.Bucket{{Owner: owner, Limits: limits}}, Amounts: points(1)}
		id := fmt.Sprintf("%q %d %q %q", take.Tenant, owner.Level, owner.Name, owner.Part)
		if candidate {
			take.Candidate = &bucket.Candidate{ID: "a", Buckets: take.Buckets}
			spent["candidate "+id]++
		}
		result, err := store.Take(t.Context(), take)
		require.NoError(t, err)
		spent[id] = min(1000, spent[id]+1)
		require.Equal(t, 1000-spent[id], result.Limits[0].Remaining, id)
		if candidate {
			require.Equal(t, 1000-spent["candidate "+id], result.Candidate.Limits[0].Remaining, id)
		}
	}
	require.Len(t, spent, store.Entries())
	require.Zero(t, store.Evicted())
}

func TestKeysThatMeetInMoreThanThereIsRoomForAreFullAndCounted(t *testing.T) {
	t.Parallel()
	store := bucket.NewMemory(bucket.MemoryConfig{Clock: newClock().now})
	store.HashOnly(0)
	limits := compile(t, bucket.Limit{Name: "day", Capacity: 1000, Period: 24 * time.Hour})
	const users = 1000
	user := func(i int) []bucket.Bucket {
		return []bucket.Bucket{{Owner: bucket.Owner{Level: bucket.User, Name: fmt.Sprint(i)}, Limits: limits}}
	}
	for i := range users {
		_, err := store.Take(t.Context(), bucket.Take{Tenant: "acme", Buckets: user(i), Amounts: points(int64(i + 1))})
		require.NoError(t, err)
	}
	full := 0
	for i := range users {
		states, err := store.Peek(t.Context(), "acme", user(i))
		require.NoError(t, err)
		if states[0].Remaining == 1000 {
			full++
			continue
		}
		require.EqualValues(t, 1000-i-1, states[0].Remaining)
	}
	require.EqualValues(t, full, store.Evicted())
	require.Equal(t, users-full, store.Entries())
}
