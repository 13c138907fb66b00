package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// SignerConfig configures a [Signer].
type SignerConfig struct {
	// Key signs. All services that share a log have the same one.
	Key *Key
	// Every is how often [Signer.Run] looks whether the log has grown. Zero is a minute; at least a second.
	Every time.Duration
	// OnCheckpoint is told each checkpoint that this signer has made, once it is stored. It is where a checkpoint leaves the
	// database: what is kept elsewhere is what makes the log tamper-evident. Nil tells nobody.
	OnCheckpoint func(signed []byte)
	// Logger is told what fails. Nil is slog.Default.
	Logger *slog.Logger
}

// ErrOtherKey says that the log names another key than the signer's: the key was rotated, or the signer has one of another log.
var ErrOtherKey = errors.New("audit: the log names another key: start the service with that one, or rotate the key")

// Signer signs checkpoints of a log. Before it signs it looks whether the log still begins with what was signed last, and whether the
// records since are those that the hashes are of: it puts its name to nothing else. It is safe for concurrent use.
type Signer struct {
	log Log
	cfg SignerConfig

	// signing is held while a checkpoint is made, which waits for the log.
	signing sync.Mutex
	// mu guards what follows, which is changed by who signs.
	mu sync.Mutex
	// last is the newest checkpoint that this signer has made or seen, and err why it has made none since.
	last *Checkpoint
	err  error
}

// NewSigner returns a signer. The error names every mistake in the configuration.
func NewSigner(log Log, cfg SignerConfig) (*Signer, error) {
	var mistakes []error
	if cfg.Key == nil {
		mistakes = append(mistakes, errors.New("audit: SignerConfig.Key is missing: NewKey makes one, ParseKey reads it"))
	}
	if cfg.Every == 0 {
		cfg.Every = time.Minute
	}
	if cfg.Every < time.Second {
		mistakes = append(mistakes, fmt.Errorf("audit: SignerConfig.Every is %s, want at least a second", cfg.Every))
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return &Signer{log: log, cfg: cfg}, errors.Join(mistakes...)
}

// Sign returns the newest signed checkpoint, after it has made one at the time now if the log has grown since. It returns nil where
// the log is empty. The error is a [*TamperError] where the log is not what it was, and wraps [ErrOtherKey] where it is
// not this signer's; nothing is signed then.
func (s *Signer) Sign(ctx context.Context, now time.Time) ([]byte, error) {
	s.signing.Lock()
	defer s.signing.Unlock()
	var (
		made   bool
		c      *Checkpoint
		signed []byte
	)
	err := s.log.Change(ctx, func(ctx context.Context, storage Storage) error {
		var err error
		if c, signed, err = newest(ctx, storage, s.cfg.Key); err != nil {
			return err
		}
		next, err := extend(ctx, storage, c)
		if err == nil {
			err = s.grown(ctx, storage, c)
		}
		if made = err == nil && next.Size > sizeOf(c); !made {
			return err
		}
		next.Name, next.Time, next.Key = s.cfg.Key.Name(), truncated(now), s.cfg.Key.Public()
		c = next
		signed, err = store(ctx, storage, next, s.cfg.Key)
		return err
	})
	s.note(c, err)
	if err != nil {
		return nil, fmt.Errorf("audit: no checkpoint: %w", err)
	}
	if made && s.cfg.OnCheckpoint != nil {
		s.cfg.OnCheckpoint(signed)
	}
	return signed, nil
}

// note notes what has come of it.
func (s *Signer) note(c *Checkpoint, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err = err; err == nil {
		s.last = c
	}
}

// Status returns the newest checkpoint that this signer knows, nil if none, and why it made none when it was last asked to.
func (s *Signer) Status() (*Checkpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		return nil, s.err
	}
	last := *s.last
	return &last, s.err
}

// lastOne is for how long Run signs after it was told to end.
const lastOne = 5 * time.Second

// Run signs at the interval until the context ends, and once more then, so that entries of the last minute are covered. What fails is
// logged, and tried again at the next interval.
func (s *Signer) Run(ctx context.Context) {
	ticker := time.NewTicker(s.cfg.Every)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			s.sign(ctx, now)
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastOne)
			defer cancel()
			s.sign(ctx, time.Now())
			return
		}
	}
}

// sign signs and logs what fails.
func (s *Signer) sign(ctx context.Context, now time.Time) {
	_, err := s.Sign(ctx, now)
	var tampered *TamperError
	switch {
	case errors.As(err, &tampered):
		s.cfg.Logger.ErrorContext(ctx, "audit: THE LOG WAS TAMPERED WITH, no checkpoint is signed", slog.Any("error", err))
	case err != nil:
		s.cfg.Logger.ErrorContext(ctx, "audit: no checkpoint was signed", slog.Any("error", err))
	}
}

// grown checks that the newest checkpoint is of the log that this signer has signed before.
func (s *Signer) grown(ctx context.Context, storage Storage, c *Checkpoint) error {
	if s.last == nil {
		return nil
	}
	if sizeOf(c) < s.last.Size {
		return &TamperError{From: sizeOf(c), To: s.last.Size, Problem: "the log had them when they were signed, and has no such checkpoint now"}
	}
	proof, err := ProveGrowth(ctx, storage, s.last.Size, c.Size)
	if err != nil {
		return err
	}
	return CheckGrowth(s.last, c, proof)
}

// newest reads the newest checkpoint of a log, which the key has to have signed. It is nil where there is none.
func newest(ctx context.Context, storage Storage, key *Key) (*Checkpoint, []byte, error) {
	signed, err := storage.Newest(ctx)
	if err != nil || len(signed) == 0 {
		return nil, nil, err
	}
	c, err := OpenCheckpoint(signed, key.Public())
	switch {
	case errors.Is(err, errSignature) || err == nil && c.Key != key.Public():
		return nil, nil, ErrOtherKey
	case err != nil:
		return nil, nil, err
	}
	return c, signed, nil
}

// sizeOf returns the size of a checkpoint that may be missing.
func sizeOf(c *Checkpoint) int64 {
	if c == nil {
		return 0
	}
	return c.Size
}

// page is how many records are read at once: 10 MiB at most.
const page = 64

// extend returns what a log is now, after it has looked whether it begins with what it was at a checkpoint, if there is one, and
// whether the hashes since are those of the records.
func extend(ctx context.Context, storage Reader, c *Checkpoint) (*Checkpoint, error) {
	size, err := storage.Size(ctx)
	if err != nil {
		return nil, err
	}
	from := sizeOf(c)
	if size < from {
		return nil, &TamperError{From: size, To: from, Problem: "they were signed, and are gone"}
	}
	f, err := frontierOf(ctx, storage, from)
	if err != nil {
		return nil, err
	}
	if c != nil && f.root() != c.Root {
		return nil, &TamperError{From: 0, To: from, Problem: "their hashes are not those that were signed"}
	}
	for f.size < size {
		records, err := storage.Records(ctx, f.size, int(min(page, size-f.size)))
		if err != nil {
			return nil, err
		}
		if len(records) == 0 {
			return nil, &TamperError{From: f.size, To: size, Problem: "they are counted, and are not there"}
		}
		for _, record := range records {
			if _, problem := readAt(record, f.size); problem != "" {
				return nil, &TamperError{From: f.size, To: f.size + 1, Problem: problem}
			}
			f.add(record)
		}
	}
	if size > 0 {
		root, err := Root(ctx, storage, size)
		if err != nil {
			return nil, err
		}
		if root != f.root() {
			return nil, &TamperError{From: from, To: size, Problem: "their records are not those that the hashes are of"}
		}
	}
	return &Checkpoint{Size: size, Root: f.root()}, nil
}

// readAt reads the record of a sequence, or says what is wrong with it.
func readAt(record []byte, sequence int64) (*Entry, string) {
	e, err := ParseRecord(record)
	switch {
	case err != nil:
		return nil, "what stands there is " + strings.TrimPrefix(err.Error(), "audit: ")
	case e.Sequence != sequence:
		return nil, fmt.Sprintf("entry %d stands in the place of entry %d", e.Sequence, sequence)
	}
	return e, ""
}

// store signs and stores a checkpoint.
func store(ctx context.Context, storage Storage, c *Checkpoint, key *Key) ([]byte, error) {
	signed, err := c.sign(key)
	if err != nil {
		return nil, err
	}
	return signed, storage.AppendCheckpoint(ctx, c.Size, signed)
}
