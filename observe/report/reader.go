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
)

//go:embed refusal.lua
var refusalSource string

var (
	refusalScript = redis.NewScript(refusalSource)
	timeScript    = redis.NewScript(`return redis.call('TIME')[1]`)
)

const (
	// searched is how many entries one call looks at, and maxCalls how many calls a search makes at most.
	searched = 512
	maxCalls = 2000
	// page is how many activities one call reads.
	page = 256
	// maxID is how long the id of a refusal is at most.
	maxID = 128
)

// ErrNotFound says that the stream has no refusal of this id: it is too old, was not written, or never was.
var ErrNotFound = errors.New("report: the stream has no refusal of this id")

// Reader reads what instances have written. It is made by [NewReader] and safe for concurrent use.
type Reader struct{ place Place }

// NewReader returns a reader. It does not connect. The error has everything that is wrong with the place.
func NewReader(place Place) (*Reader, error) {
	place = place.withDefaults()
	if err := place.validate(); err != nil {
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
	ctx, cancel := bounded(ctx)
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
// further ones follow. After any other error nothing does.
func (r *Reader) Activities(ctx context.Context, within time.Duration) iter.Seq2[Activity, error] {
	return func(yield func(Activity, error) bool) {
		now, err := r.now(ctx)
		from := strconv.FormatInt(now.Add(-within).UnixMilli(), 10)
		for err == nil {
			var entries []redis.XMessage
			if entries, err = r.page(ctx, from); err != nil {
				break
			}
			for i := range entries {
				from = "(" + entries[i].ID
				if !yield(activityOf(&entries[i])) {
					return
				}
			}
			if len(entries) < page {
				return
			}
		}
		yield(Activity{}, fmt.Errorf("report: %w", err))
	}
}

// activityOf reads an entry.
func activityOf(entry *redis.XMessage) (a Activity, err error) {
	packed, _ := entry.Values[activityField].(string)
	err = a.decode(packed)
	ms, _, _ := strings.Cut(entry.ID, "-")
	if at, notANumber := strconv.ParseInt(ms, 10, 64); notANumber == nil {
		a.seen = time.UnixMilli(at)
	}
	return a, err
}

// page reads some entries.
func (r *Reader) page(ctx context.Context, from string) ([]redis.XMessage, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	return r.place.Client.XRangeN(ctx, r.place.activityKey(), from, "+", page).Result()
}

// now is the time of the Redis.
func (r *Reader) now(ctx context.Context) (time.Time, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	seconds, err := timeScript.Run(ctx, r.place.Client, []string{r.place.activityKey()}).Int64()
	return time.Unix(seconds, 0), err
}
