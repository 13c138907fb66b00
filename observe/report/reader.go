package report

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/event/redisstream"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redisplace"
)

//go:embed refusal.lua
var refusalSource string

//go:embed activity.lua
var activitySource string

var (
	refusalScript  = redis.NewScript(refusalSource)
	activityScript = redis.NewScript(activitySource)
)

const (
	// searched is how many entries one call looks at, and maxCalls how many calls a search makes at most.
	searched = 512
	maxCalls = 2000
	// page is how many activities one call reads, maxRead how many are read in all, and maxBytes how many bytes.
	page     = 256
	maxRead  = 2 * maxEntries
	maxBytes = 128 << 20
	// maxID is how long the id of a refusal is at most.
	maxID = 128
)

// ErrNotFound says that the stream has no refusal of this id: it is too old, was not written, or never was.
var ErrNotFound = errors.New("report: the stream has no refusal of this id")

// errTooMuch says that instances do not write as much as is there.
var errTooMuch = fmt.Errorf("the stream of activity has more than %d entries or %d bytes of that time", maxRead, maxBytes)

// Reader reads what instances have written. It is made by [NewReader] and safe for concurrent use.
type Reader struct{ place Place }

// NewReader returns a reader. It does not connect. The error has everything that is wrong with the place.
func NewReader(place Place) (*Reader, error) {
	if err := place.complete(); err != nil {
		return nil, err
	}
	return &Reader{place}, nil
}

// Refusal returns the refusal of an id, of whatever instance. The error is [ErrNotFound] if the stream does not have it, and matches [ErrUnreadable] if
// the entry of this id is something else.
func (r *Reader) Refusal(ctx context.Context, id string) (*Refusal, error) {
	if id == "" || len(id) > maxID {
		return nil, ErrNotFound
	}
	ctx, cancel := redisplace.Bounded(ctx)
	defer cancel()
	key := redisstream.Key(r.place.Namespace, stream.DefaultDenials)
	from := "+"
	for range maxCalls {
		reply, err := refusalScript.Run(ctx, r.place.Client, []string{key}, id, from, searched, maxRefusal).StringSlice()
		switch {
		case err != nil:
			return nil, fmt.Errorf("report: %w", err)
		case len(reply) == 0:
			return nil, ErrNotFound
		case len(reply) == 1:
			from = reply[0]
			continue
		}
		found := new(Refusal)
		if err := found.decode([]byte(reply[1])); err != nil {
			return nil, err
		}
		if found.RefusalID != id {
			return nil, ErrUnreadable
		}
		found.Instance = instanceOf(reply[0])
		return found, nil
	}
	return nil, ErrNotFound
}

// instanceOf returns the name of the instance in a source, empty if it is none.
func instanceOf(source string) string {
	_, escaped, _ := strings.Cut(source, "/")
	name, err := url.PathUnescape(escaped)
	if err != nil {
		return ""
	}
	return name
}

// Activities yields what instances have written within a time until now, the oldest first. An error that matches [ErrUnreadable] is about one entry, and
// further ones follow. After any other error nothing does. Whatever stands in the Redis, it reads 32 768 entries and 128 MiB at most.
func (r *Reader) Activities(ctx context.Context, within time.Duration) iter.Seq2[Activity, error] {
	return func(yield func(Activity, error) bool) {
		now, err := r.now(ctx)
		from := strconv.FormatInt(now.Add(-within).UnixMilli(), 10)
		entries, size := 0, 0
		for err == nil {
			var reply []string
			if reply, err = r.page(ctx, from); err != nil {
				break
			}
			for i := 0; i+1 < len(reply); i += 2 {
				from = "(" + reply[i]
				size += len(reply[i+1])
				if !yield(activityOf(reply[i], reply[i+1])) {
					return
				}
			}
			if len(reply) < 2*page {
				return
			}
			if entries += page; entries >= maxRead || size > maxBytes {
				err = errTooMuch
			}
		}
		yield(Activity{}, fmt.Errorf("report: %w", err))
	}
}

// activityOf reads an entry.
func activityOf(id, text string) (a Activity, err error) {
	err = a.decode(text)
	ms, _, _ := strings.Cut(id, "-")
	if at, notANumber := strconv.ParseInt(ms, 10, 64); notANumber == nil {
		a.seen = time.UnixMilli(at).UTC()
	}
	return a, err
}

// page reads some entries: of each its id and its text.
func (r *Reader) page(ctx context.Context, from string) ([]string, error) {
	ctx, cancel := redisplace.Bounded(ctx)
	defer cancel()
	return activityScript.Run(ctx, r.place.Client, []string{r.place.activityKey()}, from, page, maxActivity).StringSlice()
}

// now is the time of the Redis.
func (r *Reader) now(ctx context.Context) (time.Time, error) {
	ctx, cancel := redisplace.Bounded(ctx)
	defer cancel()
	return redisplace.Now(ctx, r.place.Client, r.place.activityKey())
}
