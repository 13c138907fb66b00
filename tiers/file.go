package tiers

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

var errNotRegular = errors.New("not a regular file")

// defaultInterval is how often a [File] looks at its file.
const defaultInterval = 2 * time.Second

// FileConfig is how a [File] follows its file. The zero value is the default in each field.
type FileConfig struct {
	// Interval is how often the file is looked at. A change holds when two looks in a row have found
	// it, so after one interval at least and two at most. Zero means two seconds, -1 means
	// never: only [File.Reload] loads it again.
	Interval time.Duration
	// MaxDocument is the size in bytes of the largest file, as in [ParseConfig]. Zero means 1 MiB, and 16 MiB is the most.
	MaxDocument int
	// OnReload is told each other policy that was loaded, with no error, and each failure to load one,
	// with the policy that stays. A failure that lasts is told once, and so is its end when the content
	// of that policy is back: with no error and the snapshot that holds, whose generation is the same.
	// It is not told of the policy that [OpenFile] returns with. It runs in the goroutine of the file or in that of the caller of
	// Reload, one call at a time, and must not call Reload or Close. Nil logs it by slog.Default().
	OnReload func(*Snapshot, error)
}

// File is a [Source] that follows a policy file: it loads the file again when its content changes,
// and stays with the last good policy while it is wrong or away. It is safe for concurrent use.
//
// Replace the file by renaming a new one over it, which shows readers the old document or the new one
// and never a part. A file that is written in place can be read when it is half written, and that half
// can be a valid document: one that ends before its exceptions blocks nobody. So what a look finds is
// not judged before the next look has found the same. A writer that pauses for longer than the
// interval, [OpenFile] and [File.Reload] are not covered by that.
type File struct {
	path     string
	onReload func(*Snapshot, error)
	// most is the size of the largest document.
	most    int
	current atomic.Pointer[Snapshot]

	// mu guards the loading, not the lookup.
	mu sync.Mutex
	// loaded is the digest of the content of the current policy.
	loaded [sha256.Size]byte
	// checks are what a policy has to pass.
	checks checks
	// seen is the digest of the content that the last look found and did not judge, because it was
	// new. It is zero if there is none.
	seen [sha256.Size]byte
	// failure is the text of the last error, so that one that lasts is told once. It is empty while
	// all is well.
	failure string

	stop   chan struct{}
	closed sync.Once
	ended  sync.WaitGroup
}

var _ Checker = (*File)(nil)

// OpenFile loads a policy file, YAML or JSON, as it is now, and follows it until [File.Close]. The file
// must be a regular one of at most [FileConfig.MaxDocument] bytes.
//
// An error is that of reading, or a [*PolicyError], and names the file: there is no last good policy yet.
func OpenFile(path string, cfg FileConfig) (*File, error) {
	most, err := documentBound("FileConfig", cfg.MaxDocument)
	if cfg.Interval < -1 {
		err = errors.Join(fmt.Errorf("tiers: a FileConfig.Interval of %v; 0 is the default, and -1 never looks again", cfg.Interval), err)
	}
	if err != nil {
		return nil, err
	}
	f := &File{path: path, onReload: cfg.OnReload, most: most, stop: make(chan struct{})}
	data, digest, err := f.read()
	if err != nil {
		return nil, err
	}
	snapshot, err := f.load(data)
	if err != nil {
		return nil, err
	}
	f.loaded = digest
	f.current.Store(snapshot)
	if cfg.Interval == 0 {
		cfg.Interval = defaultInterval
	}
	if cfg.Interval > 0 {
		f.ended.Go(func() { f.follow(cfg.Interval) })
	}
	return f, nil
}

// Snapshot returns the last good policy as it holds now, also after Close.
func (f *File) Snapshot() *Snapshot {
	return f.current.Load().Snapshot()
}

// Reload loads the file as it is now, also after Close. Unlike the looks of the interval it does not
// wait for a second look: call it when the file is whole. It returns why the file does not load; then
// the last good policy stays.
func (f *File) Reload() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	data, digest, err := f.read()
	return f.judge(data, digest, err)
}

// look is what happens at each interval.
func (f *File) look() {
	f.mu.Lock()
	defer f.mu.Unlock()
	data, digest, err := f.read()
	if err == nil && digest != f.loaded && digest != f.seen {
		f.seen = digest
		return
	}
	// OnReload is told the error.
	_ = f.judge(data, digest, err)
}

// judge takes the content as the policy if it is one, and tells OnReload. It expects what read
// returned.
func (f *File) judge(data []byte, digest [sha256.Size]byte, err error) error {
	// Two looks are equal in a row, or they do not count.
	f.seen = [sha256.Size]byte{}
	var snapshot *Snapshot
	if err == nil && digest != f.loaded {
		snapshot, err = f.load(data)
	}
	if err != nil {
		if text := err.Error(); text != f.failure {
			f.failure = text
			f.tell(err)
		}
		return err
	}
	failed := f.failure != ""
	f.failure = ""
	if snapshot != nil {
		snapshot.family.generation = f.current.Load().family.generation + 1
		f.loaded = digest
		f.current.Store(snapshot)
	}
	if snapshot != nil || failed {
		f.tell(nil)
	}
	return nil
}

// load compiles the document. The error names the file.
func (f *File) load(data []byte) (*Snapshot, error) {
	_, snapshot, err := load(data, f.most)
	if mistakes := (*PolicyError)(nil); errors.As(err, &mistakes) {
		mistakes.File = f.path
	}
	if err != nil {
		return nil, err
	}
	if err := f.checks.pass(snapshot); err != nil {
		return nil, fmt.Errorf("tiers: policy %s: %w", f.path, err)
	}
	return snapshot, nil
}

// Check implements [Checker]: a policy that does not pass is refused as one that is wrong in itself is, and
// the last good one stays.
func (f *File) Check(check func(*Snapshot) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checks = append(f.checks, check)
	return check(f.Snapshot())
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
			f.look()
		}
	}
}

func (f *File) tell(err error) {
	switch {
	case f.onReload != nil:
		f.onReload(f.Snapshot(), err)
	case err != nil:
		slog.Error("tiers: the policy file does not load: the last good policy stays",
			slog.String("path", f.path), slog.String("error", err.Error()))
	default:
		slog.Info("tiers: the policy file was loaded", slog.String("path", f.path))
	}
}

// read returns the content of the file and its digest. The content is compared and not the time of
// the file: that is too coarse on some file systems, and the content is small.
func (f *File) read() ([]byte, [sha256.Size]byte, error) {
	data, err := readFile(f.path, f.most)
	if err != nil {
		return nil, [sha256.Size]byte{}, fmt.Errorf("tiers: %w", err)
	}
	return data, sha256.Sum256(data), nil
}

// readFile reads at most one byte more than fits, which is enough for the parser to say so.
func readFile(path string, most int) ([]byte, error) {
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
	data, err := io.ReadAll(io.LimitReader(file, int64(most)+1))
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	return data, err
}
