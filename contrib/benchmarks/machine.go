package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
)

// compared are the modules that stand in the tables.
var compared = []string{
	"github.com/99designs/gqlgen",
	"github.com/vektah/gqlparser/v2",
	"github.com/wundergraph/graphql-go-tools/v2",
	"github.com/redis/go-redis/v9",
	"github.com/go-redis/redis_rate/v10",
	"github.com/throttled/throttled/v2",
	"github.com/sethvargo/go-redisstore",
	"github.com/sethvargo/go-limiter",
	"github.com/ulule/limiter/v3",
}

// machine says what the tables were measured on and with.
func machine(ctx context.Context) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d × %s, %s/%s, %s, Redis %s.\n",
		runtime.GOMAXPROCS(0), processorModel(), runtime.GOOS, runtime.GOARCH, runtime.Version(), redisVersion(ctx))
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return b.String()
	}
	versions := make(map[string]string, len(build.Deps))
	for _, module := range build.Deps {
		versions[module.Path] = module.Version
	}
	var modules []string
	for _, path := range compared {
		if version := versions[path]; version != "" {
			modules = append(modules, strings.TrimPrefix(path, "github.com/")+" "+version)
		}
	}
	b.WriteString(strings.Join(modules, ", ") + ".\n")
	return b.String()
}

func processorModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

func redisVersion(ctx context.Context) string {
	text, err := exec.CommandContext(ctx, "redis-server", "--version").Output()
	if err != nil {
		return "is not installed"
	}
	_, version, _ := strings.Cut(string(text), " v=")
	version, _, _ = strings.Cut(version, " ")
	return version
}

// loadAverage is how many processes of the machine ran or waited to run in the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "not known"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
