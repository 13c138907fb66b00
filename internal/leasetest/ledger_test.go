package leasetest_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// sharedClock is the time that all processes of a machine share and that never steps, CLOCK_MONOTONIC, in nanoseconds.
type sharedClock struct {
	epoch time.Time
	// earliest and latest bound what it was at the epoch.
	earliest, latest int64
}

// newSharedClock compares the clock of the process with the one that all share, which asks the system each time.
func newSharedClock() (best sharedClock, err error) {
	for range 100 {
		var now syscall.Timespec
		begin := time.Now()
		_, _, failure := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&now)), 0)
		if failure != 0 {
			return best, failure
		}
		c := sharedClock{begin, now.Nano() - int64(time.Since(begin)), now.Nano()}
		if best.epoch.IsZero() || c.latest-c.earliest < best.latest-best.earliest {
			best = c
		}
	}
	return best, nil
}

// before is a moment that is not after now, and after one that is not before it.
func (c *sharedClock) before() int64 { return c.earliest + int64(time.Since(c.epoch)) }
func (c *sharedClock) after() int64  { return c.latest + int64(time.Since(c.epoch)) }

const (
	// wordsNoted are those of an operation in a ledger: before, after, cost and verdict.
	wordsNoted = 3
	noted      = 8 * wordsNoted
	// room is for how many operations a ledger has room. A file that nothing was written to takes none on the disk.
	room = 2 << 20
)

// errFull says that operations were made that nobody has noted.
var errFull = errors.New("the ledger is full")

// ledger is a file that a process notes its operations in before they are answered. It is memory of the file, so that it outlives
// a process that is killed.
type ledger struct {
	memory []byte
	next   atomic.Int64
}

func openLedger(path string) (*ledger, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if err := file.Truncate(room * noted); err != nil {
		return nil, err
	}
	memory, err := syscall.Mmap(int(file.Fd()), 0, room*noted, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	return &ledger{memory: memory}, err
}

// note notes an operation. What was half noted when the process was killed has no time, and was not answered.
func (l *ledger) note(o operation) error {
	at := l.next.Add(1) - 1
	if at >= room {
		return errFull
	}
	words := l.memory[at*noted:]
	binary.LittleEndian.PutUint64(words[8:], uint64(o.after))
	binary.LittleEndian.PutUint64(words[16:], uint64(o.cost<<2|int64(o.is)))
	binary.LittleEndian.PutUint64(words, uint64(o.before))
	return nil
}

// readLedger returns what was noted.
func readLedger(t testing.TB, path string) (all []operation) {
	t.Helper()
	l, err := openLedger(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Munmap(l.memory)) }()
	for empty, at := 0, 0; at < room && empty < 1024; at++ {
		words := l.memory[at*noted:]
		before := int64(binary.LittleEndian.Uint64(words))
		if before == 0 {
			empty++
			continue
		}
		empty = 0
		rest := int64(binary.LittleEndian.Uint64(words[16:]))
		all = append(all, operation{before, int64(binary.LittleEndian.Uint64(words[8:])), rest >> 2, verdict(rest & 3)})
	}
	return all
}

func TestALedgerHasWhatWasNotedAndNoMore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger")
	l, err := openLedger(path)
	require.NoError(t, err)
	clock, err := newSharedClock()
	require.NoError(t, err)
	other, err := newSharedClock()
	require.NoError(t, err)
	before, after := clock.before(), other.after()
	require.LessOrEqual(t, before, after, "two see one time")
	require.Less(t, after-before, int64(second))
	want := []operation{{before, after, 50, admitted}, {before + 1, after, 1, refused}, {before + 2, after, 3, blocked}}
	for _, o := range want {
		require.NoError(t, l.note(o))
	}
	require.Equal(t, want, readLedger(t, path))
	l.next.Store(room)
	require.ErrorIs(t, l.note(want[0]), errFull)
	require.NoError(t, syscall.Munmap(l.memory))
}
