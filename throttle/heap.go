package throttle

import (
	"io/fs"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
)

// memory reads which share of its memory the process holds. What a garbage collection would give back does not count: a heap grows to twice what it
// needs before one runs, and that is no pressure.
type memory struct {
	root fs.FS
	// limit is GOMEMLIMIT in bytes, zero if there is none.
	limit float64
}

// goLimit is GOMEMLIMIT, zero if there is none.
func goLimit() float64 {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		return float64(limit)
	}
	return 0
}

func (m *memory) read() (float64, bool) {
	limit := m.limit
	if group, limited := memoryQuota(m.root); limited && (limit == 0 || group < limit) {
		limit = group
	}
	if limit <= 0 {
		return 0, false
	}
	live, mapped, ok := heap()
	if !ok {
		return 0, false
	}
	held := live
	if resident, known := residentBytes(m.root); known {
		// What is not the runtime's: the program itself, and libraries in C.
		held += max(0, resident-mapped)
	}
	return held / limit, true
}

// heap returns what the runtime needs, in bytes: the objects that the last collection found, stacks and its own; and what it has of the
// system.
func heap() (live, mapped float64, ok bool) {
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(samples)
	var values [6]float64
	for i, s := range samples {
		if s.Value.Kind() != metrics.KindUint64 {
			return 0, 0, false
		}
		values[i] = float64(s.Value.Uint64())
	}
	total, released, free, unused, objects, found := values[0], values[1], values[2], values[3], values[4], values[5]
	mapped = total - released
	return max(0, mapped-free-unused-objects) + min(objects, found), mapped, true
}

// residentBytes is what of the process is in memory, as Linux has it.
func residentBytes(root fs.FS) (float64, bool) {
	text, err := fs.ReadFile(root, "proc/self/statm")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseUint(fields[1], 10, 48)
	if err != nil {
		return 0, false
	}
	return float64(pages) * float64(os.Getpagesize()), true
}

// memoryQuota is how many bytes the control group of the process lets it hold: the least of its ancestors.
func memoryQuota(root fs.FS) (least float64, limited bool) {
	for _, text := range groupFiles(root, "memory.max") {
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil || n == 0 {
			continue
		}
		if !limited || float64(n) < least {
			least, limited = float64(n), true
		}
	}
	return least, limited
}
