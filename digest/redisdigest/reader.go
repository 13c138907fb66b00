package redisdigest

import (
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/digest"
)

//go:embed refusal.lua
var refusalSource string

//go:embed records.lua
var recordsSource string

var (
	refusalScript = redis.NewScript(refusalSource)
	recordsScript = redis.NewScript(recordsSource)
)

// ErrNotFound says that no instance has a refusal of this id: it is too old, was not told, or never was.
var ErrNotFound = errors.New("redisdigest: no instance keeps a refusal of this id")

// Reader reads what instances have written. It is made by [NewReader] and safe for concurrent use.
type Reader struct{ cfg Config }

// NewReader returns a reader. It does not connect. The error has everything that is wrong with the configuration.
func NewReader(cfg Config) (*Reader, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Reader{cfg}, nil
}

// runs returns those that were seen, the latest first.
func (r *Reader) runs(ctx context.Context) ([]string, error) {
	runs, err := r.cfg.runs().Since(ctx, time.Time{})
	if err != nil {
		return nil, fmt.Errorf("redisdigest: %w", err)
	}
	return runs, nil
}

// Digests returns those of the instances that have written within ten seconds, by name. Those that cannot be read are left out, and
// the error says how many; what is returned beside it is good.
func (r *Reader) Digests(ctx context.Context) ([]digest.Digest, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	runs, err := r.runs(ctx)
	if err != nil {
		return nil, err
	}
	var all []digest.Digest
	unread, why := 0, error(nil)
	for run, reply := range r.ask(ctx, runs, func(p redis.Pipeliner, run string) redis.Cmder {
		key, _, _ := r.cfg.keys().of(run)
		return p.GetRange(ctx, key, 0, digest.MaxDigest)
	}) {
		text, err := textOf(reply)
		if err == nil && text == "" {
			// It has said nothing of late.
			continue
		}
		var d digest.Digest
		if err == nil {
			err = d.Decode([]byte(text))
		}
		if err == nil && d.ID != run {
			err = digest.ErrUnreadable
		}
		if err != nil {
			unread, why = unread+1, err
			continue
		}
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b digest.Digest) int {
		return cmp.Or(cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.ID, b.ID))
	})
	if unread > 0 {
		return all, fmt.Errorf("redisdigest: the digests of %d instances cannot be read, one because: %w", unread, why)
	}
	return all, nil
}

// pipelined is how many runs are asked for at once.
const pipelined = 128

// ask asks for something of each run, and yields the replies. A shard that is away costs those of its runs.
func (r *Reader) ask(ctx context.Context, runs []string, ask func(redis.Pipeliner, string) redis.Cmder) iter.Seq2[string, redis.Cmder] {
	return func(yield func(string, redis.Cmder) bool) {
		for batch := range slices.Chunk(runs, pipelined) {
			pipe := r.cfg.Client.Pipeline()
			replies := make([]redis.Cmder, len(batch))
			for i, run := range batch {
				replies[i] = ask(pipe, run)
			}
			// Each reply has its own error.
			_, _ = pipe.Exec(ctx)
			for i, run := range batch {
				if !yield(run, replies[i]) {
					return
				}
			}
		}
	}
}

// textOf returns the text of a reply, empty for none.
func textOf(reply redis.Cmder) (text string, err error) {
	switch reply := reply.(type) {
	case *redis.StringCmd:
		text, err = reply.Result()
	case *redis.Cmd:
		text, err = reply.Text()
	default:
		err = digest.ErrUnreadable
	}
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return text, err
}

// Refusal returns the refusal of an id, of whatever instance, also of one that is gone. The error is [ErrNotFound] if none has it, and
// digest.ErrUnreadable if what stands there is something else.
func (r *Reader) Refusal(ctx context.Context, id string) (*digest.Refusal, error) {
	const longest = 128
	if id == "" || len(id) > longest {
		return nil, ErrNotFound
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	runs, err := r.runs(ctx)
	if err != nil {
		return nil, err
	}
	missed := error(nil)
	// In a pipeline a script is sent whole, as one that is not there yet would fail: few bytes of it.
	for _, reply := range r.ask(ctx, runs, func(p redis.Pipeliner, run string) redis.Cmder {
		_, key, _ := r.cfg.keys().of(run)
		return refusalScript.Eval(ctx, p, []string{key}, id, digest.MaxRefusal)
	}) {
		text, err := textOf(reply)
		found := new(digest.Refusal)
		if err == nil && text != "" {
			err = found.Decode([]byte(text))
		}
		switch {
		case err != nil:
			missed = err
		case found.Decided.RefusalID == id:
			return found, nil
		default:
		}
	}
	if missed != nil {
		return nil, fmt.Errorf("redisdigest: of one instance it is not known whether it has the refusal: %w", missed)
	}
	return nil, ErrNotFound
}

// Chunks yields what instances have recorded since a time, of one instance after the other, the oldest of each first, also of instances
// that are gone. An error that is digest.ErrUnreadable is about one chunk, and further ones follow; after any other one nothing does.
// A tenant's operations are complete if each chunk has them: [digest.Chunk.Has].
func (r *Reader) Chunks(ctx context.Context, since time.Time) iter.Seq2[digest.Chunk, error] {
	return func(yield func(digest.Chunk, error) bool) {
		runs, err := r.runs(ctx)
		if err != nil {
			yield(digest.Chunk{}, err)
			return
		}
		for _, run := range runs {
			if !r.chunksOf(ctx, run, since, yield) {
				return
			}
		}
	}
}

const (
	// page is how many parts are read at once.
	page = 64
	// heldRecords is how many records of a run are held at once. Further parts stay packed until it is their turn.
	heldRecords = 1 << 17
)

// part is one part of the records of a run: a chunk, or the text of one.
type part struct {
	chunk  digest.Chunk
	packed string
}

// chunksOf yields those of a run, and returns whether to go on.
func (r *Reader) chunksOf(ctx context.Context, run string, since time.Time, yield func(digest.Chunk, error) bool) bool {
	_, _, key := r.cfg.keys().of(run)
	var all []part
	room := heldRecords
	// The list loses its oldest parts while it is read, so that it is read from its end.
	for from := page; from <= maxParts; from += page {
		parts, err := r.parts(ctx, key, -from, -from+page-1)
		if err != nil {
			yield(digest.Chunk{}, err)
			return false
		}
		old := len(parts) < page
		for i := len(parts) - 1; i >= 0; i-- {
			var chunk digest.Chunk
			if err := unpack(parts[i], &chunk); err != nil {
				if !yield(digest.Chunk{}, err) {
					return false
				}
				continue
			}
			if chunk.To.Before(since) {
				old = true
				break
			}
			if room -= len(chunk.Records); room >= 0 {
				all = append(all, part{chunk: chunk})
			} else {
				all = append(all, part{packed: parts[i]})
			}
		}
		if old {
			break
		}
	}
	for i := len(all) - 1; i >= 0; i-- {
		one, err := &all[i], error(nil)
		if one.packed != "" {
			err = unpack(one.packed, &one.chunk)
		}
		if !yield(one.chunk, err) {
			return false
		}
		*one = part{}
	}
	return true
}

func (r *Reader) parts(ctx context.Context, key string, first, last int) ([]string, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	parts, err := recordsScript.Run(ctx, r.cfg.Client, []string{key}, first, last, digest.MaxChunk).StringSlice()
	if err != nil {
		return nil, fmt.Errorf("redisdigest: %w", err)
	}
	return parts, nil
}

// unpack reads a chunk, which may have been packed by anybody.
func unpack(packed string, chunk *digest.Chunk) error {
	text, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader([]byte(packed))), digest.MaxChunk+1))
	if err != nil {
		return digest.ErrUnreadable
	}
	return chunk.Decode(text)
}
