package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/freeport"
)

// floodPolicy leaves honest tenants below their budgets. Strangers have the budgets of the example.
const floodPolicy = `
version: 1
default: anonymous
tiers:
  anonymous:
    failMode: closed
    maxCost: 300
    limits:
      minute: {capacity: 300, per: minute}
      requests: {unit: requests, capacity: 30, per: minute}
  within: {limits: {requests: {unit: requests, capacity: 400, per: second}}}
tenants:
  demo-free: {tier: within}
  demo-pro: {tier: within}
  demo-enterprise: {tier: within}
`

// flood are connections of strangers that ask as fast as they are answered.
type flood struct {
	URL         string `json:"url"`
	Seconds     int    `json:"seconds"`
	Connections int    `json:"connections"`
	// Addresses is how many addresses they come from.
	Addresses int `json:"addresses"`
	// Document is what they ask, as formats has it.
	Document string `json:"document"`
}

// formats are the documents of floods, with a number in the place of # that is another one in each request, so that no memory
// of documents knows it.
var formats = map[string]func() string{
	"a refused operation": func() string { return "query q#{__typename}" },
	"an invalid document": func() string { return "query q#{missing}" },
	"2 000 fields that are not there": func() string {
		return "query q#{" + strings.Repeat("nope ", 1990) + "}"
	},
	"2 000 times the same field": func() string { return "query q#{" + strings.Repeat("__typename ", 1990) + "}" },
	"18 fragments of introspection, each twice": func() string {
		return "query q#{__schema{...f0}}" + repeat(18, " fragment f%[1]d on __Schema{...f%[2]d ...f%[2]d}") +
			" fragment f18 on __Schema{__typename}"
	},
	"a name of 50 kB in a fragment of 16 operations and 100 fragments": func() string {
		return "query q#{...f0}" + repeat(15, " query q#x%[1]d{...f0}") + repeat(100, " fragment f%[1]d on Query{...f%[2]d}") +
			" fragment f100 on Query{" + strings.Repeat("x", 50_000) + "}"
	},
	"objects in objects in a fragment of 150 operations": func() string {
		return repeat(150, " query q#x%[1]d{...f}") + " fragment f on Query{node(id:" + strings.Repeat("[", 500) +
			strings.Repeat("]", 500) + "){id}}"
	},
	"bodies of 1 MB": func() string { return "query q#{__typename} #" + strings.Repeat("x", 1<<20) },
}

// told is what the connections of a flood were told.
type told struct {
	Answers int `json:"answers"`
	// Refused are the answers with another status than 200, and None is how many requests had no answer.
	Refused int `json:"refused"`
	None    int `json:"none"`
	// Bytes is the length of all answers.
	Bytes int `json:"bytes"`
}

// run floods.
func (f *flood) run(ctx context.Context) *told {
	ctx, stop := context.WithTimeout(ctx, time.Duration(f.Seconds)*time.Second)
	defer stop()
	body, err := json.Marshal(map[string]string{"query": formats[f.Document]()})
	if err != nil {
		return &told{}
	}
	var (
		mu   sync.Mutex
		all  told
		work sync.WaitGroup
	)
	for i := range f.Connections {
		work.Go(func() {
			web := webFrom(fmt.Sprintf("127.0.1.%d", 1+i%f.Addresses))
			defer web.CloseIdleConnections()
			for n := 0; ctx.Err() == nil; n++ {
				text := bytes.ReplaceAll(body, []byte("#"), []byte(strconv.Itoa(n*f.Connections+i)))
				status, length := f.ask(ctx, web, text)
				mu.Lock()
				all.count(status, length)
				mu.Unlock()
			}
		})
	}
	work.Wait()
	return &all
}

// count enters an answer; status is 0 if there was none.
func (t *told) count(status, length int) {
	switch {
	case status == 0:
		t.None++
		return
	case status != http.StatusOK:
		t.Refused++
	}
	t.Answers++
	t.Bytes += length
}

func (f *flood) ask(ctx context.Context, web *http.Client, body []byte) (status, length int) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.URL, bytes.NewReader(body))
	if err != nil {
		return 0, 0
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := web.Do(request)
	if err != nil {
		// A server that closes the connection before it has read the body is no reason to spin.
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
		return 0, 0
	}
	defer func() { _ = response.Body.Close() }()
	read, _ := io.Copy(io.Discard, response.Body)
	return response.StatusCode, int(read)
}

// floodsOf are those of the report.
func floodsOf(seconds int) []flood {
	all := []flood{{Seconds: seconds, Connections: 0, Addresses: 1, Document: "a refused operation"}}
	for _, from := range []struct{ connections, addresses int }{{1, 1}, {32, 1}, {32, 32}} {
		for _, document := range []string{
			"a refused operation", "an invalid document", "2 000 fields that are not there", "2 000 times the same field",
			"18 fragments of introspection, each twice", "a name of 50 kB in a fragment of 16 operations and 100 fragments",
			"objects in objects in a fragment of 150 operations", "bodies of 1 MB",
		} {
			all = append(all, flood{Seconds: seconds, Connections: from.connections, Addresses: from.addresses, Document: document})
		}
	}
	return all
}

// honest are three tenants, each from an address of its own, below all limits for half a minute.
func honest(url string, seconds int) load {
	l := load{URL: url, Seconds: seconds}
	for i, key := range []string{limitedKey, withinKey, blockedKey} {
		l.Clients = append(l.Clients, client{Key: key, PerSecond: 30, From: fmt.Sprintf("127.0.0.%d", 2+i)})
	}
	return l
}

// The processors of a flood. Strangers take all of theirs, so that an honest client beside them would measure how long it waits
// for it and not how long the server takes. Beside the server it takes a hundredth or two of a processor that the server may
// fill: the system lets whoever has used little go first.
const (
	floodedProcessor   = 0
	honestProcessor    = floodedProcessor
	strangersProcessor = 1
)

// floods shows what honest clients see of the example, with its memory store, while strangers flood it. With a commit it does
// the same with the server of that one.
func floods(ctx context.Context, commit string, seconds int) (string, error) {
	t := &table{
		title: "A flood beside honest clients",
		note: fmt.Sprintf("The example with its memory store, for %d s each. Three honest tenants ask 90 times a second together, on the processor of the "+
			"server; strangers ask as fast as they are answered, on another one. Processor: of the server, for each answer to a stranger and for each "+
			"second. Load: how many processes the machine had to run on average, those of the flood included.", seconds),
		header: []string{
			"", "processor for each answer", "processor", "strangers: answers/s", "refused by status", "bytes of an answer", "honest: served", "p50", "p99",
			"memory at most", "load",
		},
	}
	var ordeals []ordeal
	for _, f := range floodsOf(seconds) {
		ordeals = append(ordeals, ordeal{f.name(), f.measure})
	}
	return t.fill(ctx, commit, ordeals)
}

func (f *flood) name() string {
	if f.Connections == 0 {
		return "no flood"
	}
	return fmt.Sprintf("%s, %d connections from %d addresses", f.Document, f.Connections, f.Addresses)
}

// measure starts a server and floods it, while honest clients ask.
func (f *flood) measure(ctx context.Context, room, binary string) ([]string, error) {
	ctx, end := context.WithCancel(ctx)
	on := &stage{ctx: ctx, end: end}
	defer on.close()
	address, err := freeport.Address()
	if err != nil {
		return nil, err
	}
	policy := filepath.Join(room, "policy.yaml")
	if err := os.WriteFile(policy, []byte(floodPolicy), 0o600); err != nil {
		return nil, err
	}
	if err := on.start(floodedProcessor, "", binary, "-addr", address, "-policy", policy); err != nil {
		return nil, err
	}
	if err := listens(ctx, address); err != nil {
		return nil, err
	}
	server := on.running[0].Process.Pid
	f.URL = "http://" + address + "/query"
	before, start := processorOf(server), time.Now()
	var (
		strangers told
		served    counts
		failed    [2]error
		asking    sync.WaitGroup
	)
	asking.Go(func() { failed[0] = playPart(ctx, strangersProcessor, roleFlood, f, &strangers) })
	asking.Go(func() { failed[1] = playPart(ctx, honestProcessor, roleLoad, honest(f.URL, f.Seconds), &served) })
	asking.Wait()
	for _, err := range failed {
		if err != nil {
			return nil, err
		}
	}
	spent, long := processorOf(server)-before, time.Since(start)
	return f.cells(&strangers, &served, spent, long, peakOf(server)), nil
}

// playPart runs this program in a part on a processor.
func playPart(ctx context.Context, processor int, part string, asked, found any) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := json.Marshal(asked)
	if err != nil {
		return err
	}
	command := pinned(ctx, processor, self)
	command.Env = append(os.Environ(), role+"="+part)
	command.Stdin, command.Stderr = bytes.NewReader(text), os.Stderr
	if text, err = command.Output(); err != nil {
		return fmt.Errorf("%s: %w", part, err)
	}
	return json.Unmarshal(text, found)
}

func (f *flood) cells(strangers *told, served *counts, spent, long time.Duration, peak int) []string {
	asked, admitted := 0, 0
	for i := range served.Clients {
		a := &served.Clients[i]
		admitted += a.Store + a.Local
		asked += a.Store + a.Local + a.Limited + a.Busy + a.Other + a.None
	}
	each, size := "–", "–"
	if strangers.Answers > 0 {
		each = duration(float64(spent) / float64(strangers.Answers))
		size = digits(float64(strangers.Bytes) / float64(strangers.Answers))
	}
	return []string{
		each, digits(100*spent.Seconds()/long.Seconds()) + " %",
		digits(float64(strangers.Answers) / float64(f.Seconds)), percent(strangers.Refused, strangers.Answers), size,
		percent(admitted, asked), duration(served.P50 * 1e6), duration(served.P99 * 1e6),
		digits(float64(peak)/(1<<20)) + " MiB", loadOfMachine(),
	}
}

// loadOfMachine returns how many processes had to run on average over the last minute, empty where nobody knows.
func loadOfMachine() string {
	text, _ := os.ReadFile("/proc/loadavg")
	load, _, _ := strings.Cut(string(text), " ")
	return load
}

// processorOf returns the processor time of a process, 0 if it is gone.
func processorOf(process int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	const user, kernel, tick = 11, 12, 10 * time.Millisecond
	if len(fields) <= kernel {
		return 0
	}
	ticks := 0
	for _, field := range []string{fields[user], fields[kernel]} {
		n, _ := strconv.Atoi(field)
		ticks += n
	}
	return time.Duration(ticks) * tick
}

// peakOf returns the most memory that a process had, in bytes, 0 if it is gone.
func peakOf(process int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, "VmHWM:"); found {
			kilobytes, _ := strconv.Atoi(strings.Fields(rest)[0])
			return kilobytes << 10
		}
	}
	return 0
}
