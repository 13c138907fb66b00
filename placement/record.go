package placement

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// Record is where the map is kept on which instances agree: one key in a Redis, which is one of the stores or any other. Who publishes says which
// generation it means to replace, so that of two at once one is told. It is safe for concurrent use. The key is
//
//	rl:NAMESPACE:placement
type Record struct {
	client redis.UniversalClient
	key    string
}

var _ Source = (*Record)(nil)

// ErrEmpty says that no map was ever published, or that the record was lost. What holds goes on.
var ErrEmpty = errors.New("placement: there is no map")

// ConflictError says that a map was not published, because another one is there than was expected.
type ConflictError struct {
	// There is the generation of what is there, 0 for nothing.
	There uint64
}

// Error says which one is there.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("placement: nothing was published: there is generation %d", e.There)
}

// NewRecord returns the record of a namespace, where empty means main. The client stays the caller's to close.
func NewRecord(client redis.UniversalClient, namespace string) (*Record, error) {
	if client == nil {
		return nil, errors.New("placement: the client is nil: redisclient.Open makes one")
	}
	if _, err := bucket.ACLRules(namespace, false); err != nil {
		return nil, err
	}
	return &Record{client: client, key: "rl:" + cmp.Or(namespace, "main") + ":placement"}, nil
}

// Newest returns the map that was published last. The error is [ErrEmpty] if there is none.
func (r *Record) Newest(ctx context.Context) (*Map, error) {
	// One byte more than a map has, whatever stands there.
	text, err := r.client.GetRange(ctx, r.key, 0, MaxDocument).Bytes()
	if err != nil {
		return nil, fmt.Errorf("placement: %w", err)
	}
	if len(text) == 0 {
		return nil, ErrEmpty
	}
	return Parse(text)
}

// publishes puts a map in the place of the expected generation, and returns -1. Otherwise it returns the generation of what is there, 0 for nothing, or -2 for
// something else. A repeat succeeds.
var publishes = redis.NewScript(`
local is = redis.call('GETRANGE', KEYS[1], '0', ARGV[3])
if is == ARGV[2] then return -1 end
local there = '0'
if is ~= '' then there = string.match(is, '^{"generation":(%d+)') or '-2' end
if there ~= ARGV[1] then return tonumber(there) end
redis.call('SET', KEYS[1], ARGV[2])
return -1`)

// Answers of publishes that are no generation.
const (
	published     = -1
	somethingElse = -2
)

// Publish puts the map into the record if the generation of the one there is the expected one, 0 for none. Its own has to be above that. The error is a
// [*ConflictError] if another one is there. A repeat of what is there already succeeds: the answer to the first call may have been lost.
func (r *Record) Publish(ctx context.Context, m *Map, expected uint64) error {
	if err := m.Check(); err != nil {
		return err
	}
	if m.Generation <= expected {
		return fmt.Errorf("%w: generation %d does not follow %d", ErrMap, m.Generation, expected)
	}
	// Generation is the first field, which the script reads.
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMap, err)
	}
	if len(text) > MaxDocument {
		return fmt.Errorf("%w: %d bytes; at most %d fit", ErrMap, len(text), MaxDocument)
	}
	there, err := publishes.Run(ctx, r.client, []string{r.key}, expected, text, MaxDocument).Int64()
	if err != nil {
		return fmt.Errorf("placement: %w", err)
	}
	switch there {
	case published:
		return nil
	case somethingElse:
		return fmt.Errorf("%w: something else stands in the record", ErrMap)
	default:
		return &ConflictError{There: uint64(there)}
	}
}
