package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// ownBenchmark is one benchmark of a test binary, sub-benchmarks apart.
type ownBenchmark struct {
	// binary is the test binary, and dir the folder of its package, in which it runs.
	binary, dir string
	// name is that of the benchmark, with the names of its sub-benchmarks behind slashes.
	name string
}

// ownIn builds the test binaries of all packages of the module in root that have a benchmark which
// matches, and returns these benchmarks by name.
func ownIn(ctx context.Context, root, room string, match *regexp.Regexp) (map[string]ownBenchmark, error) {
	if err := os.MkdirAll(room, 0o700); err != nil {
		return nil, err
	}
	list, err := output(ctx, root, "go", "list", "-f", "{{.Dir}}", "./...")
	if err != nil {
		return nil, err
	}
	found := make(map[string]ownBenchmark)
	for i, dir := range strings.Fields(list) {
		if declared, err := declares(dir, match); err != nil {
			return nil, err
		} else if !declared {
			continue
		}
		binary := filepath.Join(room, fmt.Sprintf("%d.test", i))
		if _, err := output(ctx, dir, "go", "test", "-c", "-o", binary, "."); err != nil {
			return nil, err
		}
		names, err := leaves(ctx, binary, dir, match)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			found[name] = ownBenchmark{binary: binary, dir: dir, name: name}
		}
	}
	return found, nil
}

var declaration = regexp.MustCompile(`(?m)^func (Benchmark\w+)\(`)

// declares says whether the tests in a folder have a benchmark that matches.
func declares(dir string, match *regexp.Regexp) (bool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return false, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return false, err
		}
		for _, found := range declaration.FindAllSubmatch(text, -1) {
			if match.Match(found[1]) {
				return true, nil
			}
		}
	}
	return false, nil
}

// result matches the line that a benchmark prints, which ends the name with the number of processors.
var result = regexp.MustCompile(`(?m)^(Benchmark\S+?)(?:-\d+)?\s+\d+\s+[\d.]+ ns/op`)

// leaves runs each benchmark that matches once, and returns the names under which they print results.
func leaves(ctx context.Context, binary, dir string, match *regexp.Regexp) ([]string, error) {
	text, err := output(ctx, dir, binary, "-test.run", "^$", "-test.bench", match.String(), "-test.benchtime", "1x")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, found := range result.FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	return names, nil
}

// inBoth returns the benchmarks of one name, sorted by name.
func inBoth(old, current map[string]ownBenchmark) [][2]ownBenchmark {
	var pairs [][2]ownBenchmark
	for name, b := range current {
		if o, both := old[name]; both {
			pairs = append(pairs, [2]ownBenchmark{o, b})
		}
	}
	slices.SortFunc(pairs, func(a, b [2]ownBenchmark) int { return strings.Compare(a[0].name, b[0].name) })
	return pairs
}

// run runs the benchmark n times and returns the processor time of that, set-up and servers that it has
// started and waited for included.
func (b ownBenchmark) run(ctx context.Context, n int) (time.Duration, error) {
	var exact []string
	for part := range strings.SplitSeq(b.name, "/") {
		exact = append(exact, "^"+regexp.QuoteMeta(part)+"$")
	}
	//nolint:gosec // the binary was built here
	cmd := exec.CommandContext(ctx, b.binary,
		"-test.run", "^$", "-test.bench", strings.Join(exact, "/"), "-test.benchtime", fmt.Sprintf("%dx", n))
	cmd.Dir = b.dir
	if text, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s: %w: %s", b.name, err, text)
	}
	usage, _ := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if usage == nil {
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

// output runs a command and returns what it printed, without the space at the end.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	//nolint:gosec // the commands are written in this package, and the commit comes from whoever runs it
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	text, err := cmd.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(failed.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(text)), nil
}
