package tiers

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

var errNotRegular = errors.New("not a regular file")

// DefaultInterval is how often a [File] looks at its file.
const DefaultInterval = 2 * time.Second

// FileOptions are how a [File] follows its file. The zero value is the default in each field.
type FileOptions struct {
	// Interval is how often the file is looked at. Zero means [DefaultInterval], negative means never:
	// only [File.Reload] loads it again.
	Interval time.Duration
	// OnReload is told each other policy that was loaded, with no error, and each failure to load one,
	// with the policy that stays. A failure that lasts is told once. It is not told of the policy that
	// [OpenFile] returns with. It runs in the goroutine of the file or in that of the caller of
	// Reload, one call at a time, and must not call Reload or Close. Nil tells nobody.
	OnReload func(*Snapshot, error)
}

// File is a [Source] that follows a policy file: it loads the file again when its content changes,
// and stays with the last good policy while it is wrong or away. It is safe for concurrent use.
//
// Replace the file by renaming a new one over it. A file that is written in place may be read when
// it is half written; if that half is a valid document, it holds until the next look.
type File struct {
	path     string
	onReload func(*Snapshot, error)
	current  atomic.Pointer[Snapshot]

	// mu guards the loading, not the lookup.
	mu sync.Mutex
	// loaded is the digest of the content of the current policy.
	loaded [sha256.Size]byte
	// failure is the text of the last error, so that one that lasts is told once. It is empty while
	// all is well.
	failure string

	stop   chan struct{}
	closed sync.Once
	ended  sync.WaitGroup
}

var _ Source = (*File)(nil)

// OpenFile loads a policy file, YAML or JSON, and follows it until [File.Close]. The file must be a
// regular one of at most [MaxDocument] bytes.
//
// An error is that of reading, or a [*PolicyError]: there is no last good policy yet.
func OpenFile(path string, opts FileOptions) (*File, error) {
	f := &File{path: path, onReload: opts.OnReload, stop: make(chan struct{})}
	snapshot, digest, err := f.load()
	if err != nil {
		return nil, err
	}
	f.loaded = digest
	f.current.Store(snapshot)
	if opts.Interval == 0 {
		opts.Interval = DefaultInterval
	}
	if opts.Interval > 0 {
		f.ended.Go(func() { f.follow(opts.Interval) })
	}
	return f, nil
}

// Snapshot returns the last good policy, also after Close.
func (f *File) Snapshot() *Snapshot {
	return f.current.Load()
}

// Reload looks at the file now, also after Close. It returns why the file does not load; then the
// last good policy stays.
func (f *File) Reload() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	snapshot, digest, err := f.load()
	if err != nil {
		if text := err.Error(); text != f.failure {
			f.failure = text
			f.tell(err)
		}
		return err
	}
	f.failure = ""
	if snapshot == nil {
		return nil
	}
	snapshot.generation = f.Snapshot().generation + 1
	f.loaded = digest
	f.current.Store(snapshot)
	f.tell(nil)
	return nil
}

// Close stops following the file and waits until that has ended. It always returns nil.
func (f *File) Close() error {
	f.closed.Do(func() { close(f.stop) })
	f.ended.Wait()
	return nil
}

func (f *File) follow(interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-f.stop:
			return
		case <-ticker.C:
			// OnReload is told the error.
			_ = f.Reload()
		}
	}
}

func (f *File) tell(err error) {
	if f.onReload != nil {
		f.onReload(f.Snapshot(), err)
	}
}

// load returns the policy in the file and the digest of its content, or no policy if it is the
// current one.
func (f *File) load() (*Snapshot, [sha256.Size]byte, error) {
	data, err := readFile(f.path)
	if err != nil {
		return nil, [sha256.Size]byte{}, fmt.Errorf("tiers: %w", err)
	}
	// The content is compared and not the time of the file: that is too coarse on some file systems,
	// and the content is small.
	digest := sha256.Sum256(data)
	if digest == f.loaded {
		return nil, digest, nil
	}
	_, snapshot, err := load(data)
	return snapshot, digest, err
}

// readFile reads at most one byte more than fits, which is enough for the parser to say so.
func readFile(path string) ([]byte, error) {
	// Opening a pipe would wait for its writer.
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "read", Path: path, Err: errNotRegular}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, MaxDocument+1))
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	return data, err
}
