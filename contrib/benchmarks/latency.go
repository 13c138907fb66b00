package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// duePerSecond is how many requests of a window are due in a second.
const duePerSecond = 2000

// The rows of latencies.
const (
	rowTimer = iota
	rowUnlimited
	rowMemory
	rowRedis
)

// latencyRow is a row with what all of its windows showed.
type latencyRow struct {
	name  string
	path  string
	tells telling
	// windows are those after the first, which warms up.
	windows []*seen
	// late is by how much the sender woke up too late in each window, p99.
	late []float64
}

// latency shows what a client of HTTP waits for. The load generator, the server and Redis are processes of their own. Requests are
// due at a steady rate, and each is timed from when it was due, so that a slow answer does not spare the server those that
// are due meanwhile.
func latency(ctx context.Context, e effort) (*findings, error) {
	redis, err := startRedis() //nolint:contextcheck // a start has a deadline of its own
	if err != nil {
		return nil, err
	}
	defer redis.close()
	var address string
	server, err := startPart(ctx, roleServer, redis.Addr, &address)
	if err != nil {
		return nil, err
	}
	defer server.close()
	var nothing seen
	sending, err := startPart(ctx, roleSender, window{}, &nothing)
	if err != nil {
		return nil, err
	}
	defer sending.close()
	rows := []*latencyRow{
		rowTimer:     {name: "a bare timer"},
		rowUnlimited: {name: "gqlgen", path: "/bare", tells: tellsNothing},
		rowMemory:    {name: "**with ratelimit, memory store**", path: "/memory", tells: tellsOne},
		rowRedis:     {name: "**with ratelimit, Redis**", path: "/redis", tells: tellsOne},
	}
	var contenders []contender
	for _, row := range rows {
		w := window{Path: row.path, PerSecond: duePerSecond, Requests: e.requests, Tells: row.tells}
		if row.path != "" {
			w.Address = address
		}
		contenders = append(contenders, contender{name: row.name, turn: func(context.Context) (sample, error) {
			return row.turn(sending, w)
		}})
	}
	e.rounds = 1 + e.rounds*e.windows
	outcomes, err := contest(ctx, e, contenders)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		outcomes[i].samples, rows[i].windows, rows[i].late = outcomes[i].samples[1:], rows[i].windows[1:], rows[i].late[1:]
	}
	return latencyFindings(rows, outcomes), nil
}

// turn has one window.
func (r *latencyRow) turn(sending *part, w window) (sample, error) {
	found := &seen{}
	if err := sending.ask(w, found); err != nil {
		return sample{}, err
	}
	late := floats(found.Late)
	slices.Sort(late)
	r.windows, r.late = append(r.windows, found), append(r.late, quantile(late, 0.99))
	waits := r.waits(found)
	slices.Sort(waits)
	var s sample
	s[p50], s[p99], s[p999] = quantile(waits, 0.5), quantile(waits, 0.99), quantile(waits, 0.999)
	s[failed] = float64(found.Away) / float64(len(found.Late))
	return s, nil
}

// waits are the times of the row: of requests, and where none are sent those of the timer.
func (r *latencyRow) waits(found *seen) []float64 {
	if r.path == "" {
		return floats(found.Late)
	}
	return floats(found.Took)
}

func floats(from []int64) []float64 {
	all := make([]float64, len(from))
	for i, n := range from {
		all[i] = float64(n)
	}
	return all
}

// quiet returns the waits of the quarter of the windows in which the sender was least late, sorted, and by how much it was late
// at most. The sender is asked, and not the waits, so that what is chosen is a quiet machine and no luck of the row.
func (r *latencyRow) quiet() (waits []float64, most float64) {
	order := make([]int, len(r.windows))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(r.late[a], r.late[b]) })
	for _, i := range order[:(len(order)+3)/4] {
		waits, most = append(waits, r.waits(r.windows[i])...), max(most, r.late[i])
	}
	slices.Sort(waits)
	return waits, most
}

func latencyFindings(rows []*latencyRow, outcomes []outcome) *findings {
	var late []float64
	most := 0.0
	calm := make([][]float64, len(rows))
	for i, r := range rows {
		waits, busiest := r.quiet()
		calm[i], most, late = waits, max(most, busiest), append(late, r.late...)
	}
	t := &table{
		title: fmt.Sprintf("Latency over HTTP at %d requests a second", duePerSecond),
		note: fmt.Sprintf("Open loop: load generator, server and Redis are three processes on %d processors, and a request is timed from when it was due. "+
			"Each row has %d windows of %d requests, by turns. On the left medians of the windows, what is added formed within a round; on the right the "+
			"requests of the quarter of the windows in which the sender itself woke up least late: by %s at most at its p99, against %s in the median window.",
			runtime.GOMAXPROCS(0), len(rows[0].windows), len(rows[0].windows[0].Late), duration(most), duration(median(late))),
		header: []string{
			"ms", "p50", "p99", "p99.9", "added p50", "added p99", "quiet: p50", "p99", "p99.9", "added p50", "added p99", "decided without the store",
		},
	}
	bare := &outcomes[rowUnlimited]
	for i := range outcomes {
		o := &outcomes[i]
		add, addQuiet := []string{"–", "–"}, []string{"–", "–"}
		if i > rowUnlimited {
			add = []string{millis(o.difference(bare, p50)), millis(o.difference(bare, p99))}
			addQuiet = []string{
				millis(quantile(calm[i], 0.5) - quantile(calm[rowUnlimited], 0.5)), millis(quantile(calm[i], 0.99) - quantile(calm[rowUnlimited], 0.99)),
			}
		}
		t.add(slices.Concat(
			[]string{o.name, millis(o.median(p50)), millis(o.median(p99)), millis(o.median(p999))}, add,
			[]string{millis(quantile(calm[i], 0.5)), millis(quantile(calm[i], 0.99)), millis(quantile(calm[i], 0.999))}, addQuiet,
			[]string{digits(100*mean(o.values(failed))) + " %"})...)
	}
	const added = "added to a request over HTTP with Redis, p99, "
	shown := func(nanos float64) string { return millis(nanos) + " ms" }
	limit, redis := float64(time.Millisecond)/2, &outcomes[rowRedis]
	return &findings{tables: []*table{t}, aims: []aim{
		atMost(added+"quiet windows", limit, quantile(calm[rowRedis], 0.99)-quantile(calm[rowUnlimited], 0.99), shown).
			unless(quantile(calm[rowTimer], 0.99), limit),
		atMost(added+"median of all windows", limit, redis.difference(bare, p99), shown).unless(outcomes[rowTimer].median(p99), limit),
	}}
}

// millis shows a time that is given in nanoseconds in milliseconds, without the unit.
func millis(nanos float64) string { return digits(nanos / float64(time.Millisecond)) }

// mean is 0 of nothing.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / max(1, float64(len(values)))
}

// serveWindows is the part of a process that serves windows: a server without a limiter, and with one on each store. It is told
// the address of Redis, and tells its own.
func serveWindows(in io.Reader, out io.Writer) error {
	ctx := context.Background()
	return answering(in, out, func(question json.RawMessage) (any, error) {
		var redis string
		if err := json.Unmarshal(question, &redis); err != nil {
			return nil, err
		}
		client, err := boundClient(redis)
		if err != nil {
			return nil, err
		}
		store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Namespace: "windows"})
		if err != nil {
			return nil, err
		}
		memory, err := limitedServer()
		if err != nil {
			return nil, err
		}
		limited, err := limitedServer(func(c *ratelimit.Config) { c.Store = store })
		if err != nil {
			return nil, err
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		mux := http.NewServeMux()
		mux.Handle("/bare", plainServer())
		mux.Handle("/memory", memory)
		mux.Handle("/redis", limited)
		// The process ends with its questions, and the server with the process.
		go func() { _ = (&http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}).Serve(listener) }()
		return listener.Addr().String(), nil
	})
}
