package throttle

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

// collectors returns the signals that the configuration asks for and that this machine has.
func collectors(cfg *Config) []Source {
	root := os.DirFS("/")
	var all []Source
	if cfg.Processor != None {
		p := &processor{root: root, clock: cfg.Clock, processors: float64(runtime.GOMAXPROCS(0))}
		all = append(all, Source{Name: signalProcessor, Target: cfg.Processor, Read: p.read})
	}
	if cfg.Memory != None {
		m := &memory{root: root, limit: goLimit()}
		all = append(all, Source{Name: signalMemory, Target: cfg.Memory, Read: m.read})
	}
	return all
}

// processor reads which share of its processors the process uses: of those that the Go runtime uses and its control group lets it use.
type processor struct {
	root       fs.FS
	clock      func() time.Time
	processors float64
	used       time.Duration
	at         time.Time
}

func (p *processor) read() (float64, bool) {
	used, ok := processTime(p.root)
	if !ok {
		used, ok = runtimeTime()
	}
	now := p.clock()
	before, since := p.used, now.Sub(p.at)
	first := p.at.IsZero()
	p.used, p.at = used, now
	if !ok || first || since <= 0 || used < before {
		return 0, false
	}
	processors := p.processors
	if quota, limited := processorQuota(p.root); limited {
		processors = min(processors, quota)
	}
	if processors <= 0 {
		return 0, false
	}
	return (used - before).Seconds() / since.Seconds() / processors, true
}

// tick is the unit of times in /proc, which is the same on all machines that Go runs on.
const tick = 10 * time.Millisecond

// processTime is the processor time of the process as Linux has it.
func processTime(root fs.FS) (time.Duration, bool) {
	stat, err := fs.ReadFile(root, "proc/self/stat")
	if err != nil {
		return 0, false
	}
	// The name of the program, in brackets, may have any bytes in it.
	end := bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[end+1:]))
	const user, system = 11, 12
	if end < 0 || len(fields) <= system {
		return 0, false
	}
	ticks := uint64(0)
	for _, field := range []string{fields[user], fields[system]} {
		n, err := strconv.ParseUint(field, 10, 40)
		if err != nil {
			return 0, false
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, true
}

// runtimeTime is about the processor time of Go code and of the runtime, on machines without /proc.
func runtimeTime() (time.Duration, bool) {
	samples := []metrics.Sample{{Name: "/cpu/classes/total:cpu-seconds"}, {Name: "/cpu/classes/idle:cpu-seconds"}}
	metrics.Read(samples)
	if samples[0].Value.Kind() != metrics.KindFloat64 || samples[1].Value.Kind() != metrics.KindFloat64 {
		return 0, false
	}
	return time.Duration((samples[0].Value.Float64() - samples[1].Value.Float64()) * float64(time.Second)), true
}

// processorQuota is how many processors the control group of the process lets it use: the least of its ancestors.
func processorQuota(root fs.FS) (least float64, limited bool) {
	for _, text := range groupFiles(root, "cpu.max") {
		fields := strings.Fields(text)
		if len(fields) != 2 {
			continue
		}
		quota, err := strconv.ParseFloat(fields[0], 64)
		period, periodErr := strconv.ParseFloat(fields[1], 64)
		if err != nil || periodErr != nil || !(quota > 0) || !(period > 0) {
			continue
		}
		if n := quota / period; !limited || n < least {
			least, limited = n, true
		}
	}
	return least, limited
}

// groupFiles returns what a file says in the control group of the process, version 2, and in each of its ancestors.
func groupFiles(root fs.FS, name string) []string {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	at := ""
	for line := range strings.Lines(string(groups)) {
		if own, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			at = own
		}
	}
	var texts []string
	for at = path.Clean("/" + at); ; at = path.Dir(at) {
		// A name that is no path of the file system is not found.
		if text, err := fs.ReadFile(root, strings.TrimPrefix(path.Join("/sys/fs/cgroup", at, name), "/")); err == nil {
			texts = append(texts, strings.TrimSpace(string(text)))
		}
		if at == "/" {
			return texts
		}
	}
}
