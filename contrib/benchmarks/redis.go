package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// tenants is how many tenants decisions are spread over.
const tenants = 10_000

// tenantNames are their names, so that a call does not make one.
var tenantNames = func() []string {
	names := make([]string, tenants)
	for i := range names {
		names[i] = "tenant-" + strconv.Itoa(i)
	}
	return names
}()

// redisServer is a Redis of the benchmark's own.
type redisServer struct {
	*redistest.Server
	// admin reads the statistics of the server.
	admin *redis.Client
	dir   string
}

// quiet keeps what go-redis says of a server that is stopped on purpose out of the way of the tables.
type quiet struct{}

// Printf implements the logger of go-redis.
func (quiet) Printf(context.Context, string, ...any) {}

// startRedis starts a server on a free port of the loopback. The caller closes it.
func startRedis() (*redisServer, error) {
	dir, err := os.MkdirTemp("", "ratelimit-benchmarks")
	if err != nil {
		return nil, err
	}
	server, err := redistest.Launch(dir)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return &redisServer{
		Server: server,
		admin:  redis.NewClient(&redis.Options{Addr: server.Addr}),
		dir:    dir,
	}, nil
}

// close stops the server.
func (s *redisServer) close() {
	_ = s.admin.Close()
	s.Kill()
	_ = os.RemoveAll(s.dir)
}

// statistics are what the server has counted.
type statistics struct {
	processor time.Duration
	script    time.Duration
	commands  int64
	scripts   int64
}

// statistics reads them. Commands of the benchmark's own are left out.
func (s *redisServer) statistics(ctx context.Context) (statistics, error) {
	info, err := s.admin.InfoMap(ctx, "cpu", "commandstats").Result()
	if err != nil {
		return statistics{}, err
	}
	var st statistics
	for _, name := range []string{"used_cpu_sys", "used_cpu_user"} {
		seconds, err := strconv.ParseFloat(info["CPU"][name], 64)
		if err != nil {
			return statistics{}, err
		}
		st.processor += time.Duration(seconds * float64(time.Second))
	}
	for name, values := range info["Commandstats"] {
		name = strings.TrimPrefix(name, "cmdstat_")
		if name == "info" || strings.HasPrefix(name, "config") {
			continue
		}
		calls, micros, err := commandStatistics(values)
		if err != nil {
			return statistics{}, err
		}
		st.commands += calls
		if name == "evalsha" || name == "eval" {
			st.script += time.Duration(micros) * time.Microsecond
			st.scripts += calls
		}
	}
	return st, nil
}

// commandStatistics reads a line such as calls=2,usec=31,usec_per_call=15.50.
func commandStatistics(values string) (calls, micros int64, err error) {
	for field := range strings.SplitSeq(values, ",") {
		name, value, _ := strings.Cut(field, "=")
		switch name {
		case "calls":
			calls, err = strconv.ParseInt(value, 10, 64)
		case "usec":
			micros, err = strconv.ParseInt(value, 10, 64)
		}
		if err != nil {
			return 0, 0, err
		}
	}
	return calls, micros, nil
}

// decision is one decision about a tenant.
type decision func(ctx context.Context, tenant string) error

// calling returns a contender that decides with so many callers at once. Failed calls are counted if
// they may fail, and end the contest otherwise.
func (s *redisServer) calling(e effort, name string, callers int, mayFail bool, decide decision) contender {
	warm := false
	return contender{name: name, turn: func(ctx context.Context) (sample, error) {
		if !warm {
			warm = true
			if _, err := s.drive(ctx, e.call/2, callers, mayFail, decide); err != nil {
				return sample{}, err
			}
		}
		return s.drive(ctx, e.call, callers, mayFail, decide)
	}}
}

// drive lets the callers decide for a while.
func (s *redisServer) drive(
	ctx context.Context, length time.Duration, callers int, mayFail bool, decide decision,
) (sample, error) {
	if err := s.admin.ConfigResetStat(ctx).Err(); err != nil {
		return sample{}, err
	}
	before, err := s.statistics(ctx)
	if err != nil {
		return sample{}, err
	}
	latencies := make([][]time.Duration, callers)
	errs := make([]error, callers)
	var failures, next atomic.Int64
	var group sync.WaitGroup
	start := time.Now()
	end := start.Add(length)
	for caller := range callers {
		group.Go(func() {
			// Each caller decides at least once, however late it gets a processor.
			last := time.Now()
			for first := true; first || last.Before(end); first = false {
				// A step that has no common divisor with the number of tenants visits all of them.
				const step = 7919
				tenant := tenantNames[next.Add(step)%tenants]
				if err := decide(ctx, tenant); err != nil {
					failures.Add(1)
					if !mayFail {
						errs[caller] = err
						return
					}
				}
				now := time.Now()
				latencies[caller] = append(latencies[caller], now.Sub(last))
				last = now
			}
		})
	}
	group.Wait()
	took := time.Since(start)
	if err := errors.Join(errs...); err != nil {
		return sample{}, err
	}
	after, err := s.statistics(ctx)
	if err != nil {
		return sample{}, err
	}
	all := slices.Concat(latencies...)
	slices.Sort(all)
	n := float64(len(all))
	var result sample
	// A call that failed decided nothing.
	result[perSecond] = (n - float64(failures.Load())) / took.Seconds()
	result[p50] = float64(all[len(all)/2])
	result[p99] = float64(all[len(all)*99/100])
	result[serverProcessor] = float64(after.processor-before.processor) / n
	result[script] = float64(after.script-before.script) / n
	result[commands] = float64(after.commands-before.commands) / n
	result[scripts] = float64(after.scripts-before.scripts) / n
	result[failed] = float64(failures.Load()) / n
	return result, nil
}
