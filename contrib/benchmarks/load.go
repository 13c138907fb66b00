package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"
)

// The parts that this program plays besides its own, named by a variable of the environment: it has the processes
// that starve and ask a server, so that they can stand on other processors than it does, and those that may have to be killed.
const (
	role      = "BENCHMARKS_ROLE"
	roleLoop  = "loop"
	roleLoad  = "load"
	roleTrial = "trial"
	roleFlood = "flood"
	// roleServer serves requests of windows, roleSender sends them, and roleCrowd has a store of many tenants.
	roleServer = "server"
	roleSender = "sender"
	roleCrowd  = "crowd"
)

// play plays the part that the environment names, and reports whether it names one.
func play() (bool, error) {
	switch os.Getenv(role) {
	case roleLoop:
		loop(os.Getppid())
		return true, nil
	case roleLoad:
		var asked load
		if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
			return true, err
		}
		return true, json.NewEncoder(os.Stdout).Encode(asked.run(context.Background()))
	case roleFlood:
		var asked flood
		if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
			return true, err
		}
		return true, json.NewEncoder(os.Stdout).Encode(asked.run(context.Background()))
	case roleTrial:
		return true, measureTrials(os.Stdin, os.Stdout)
	case roleServer:
		return true, serveWindows(os.Stdin, os.Stdout)
	case roleSender:
		return true, sendWindows(os.Stdin, os.Stdout)
	case roleCrowd:
		return true, answerCrowd(os.Stdin, os.Stdout)
	default:
		return false, nil
	}
}

// loop is busy until the process that has started it is gone.
func loop(parent int) {
	const look = 1 << 20
	for i := 0; i%look != 0 || os.Getppid() == parent; i++ {
	}
}

// load are clients that ask a server.
type load struct {
	URL     string   `json:"url"`
	Seconds int      `json:"seconds"`
	Clients []client `json:"clients"`
}

// client asks in the name of one account, at moments that do not depend on the answers.
type client struct {
	Key string `json:"key"`
	// From is the address of this machine that it asks from, empty for any.
	From string `json:"from,omitempty"`
	// PerSecond is how often it asks, evenly. Zero means in bursts: so many requests at once, again and again.
	PerSecond   int `json:"perSecond"`
	Burst       int `json:"burst"`
	EveryMillis int `json:"everyMillis"`
	// Allowed is how many requests its budget allows in all, zero if it asks for less.
	Allowed float64 `json:"allowed"`
}

// answers are what one client was told.
type answers struct {
	// Store and Local were admitted by the store and without it; Limited, Busy and Other were refused.
	Store   int `json:"store"`
	Local   int `json:"local"`
	Limited int `json:"limited"`
	Busy    int `json:"busy"`
	Other   int `json:"other"`
	// Without were decided without the store, whatever the decision.
	Without int `json:"without"`
	// None is how many requests had no answer.
	None int `json:"none"`
}

// counts are what the clients of a load were told, in the order of the clients, and how long the answers took in
// milliseconds.
type counts struct {
	Clients []answers `json:"clients"`
	P50     float64   `json:"p50"`
	P99     float64   `json:"p99"`
}

// run asks, and returns when all answers are there.
func (l *load) run(ctx context.Context) *counts {
	c := &counter{counts: counts{Clients: make([]answers, len(l.Clients))}}
	var asking sync.WaitGroup
	for i := range l.Clients {
		web := webFrom(l.Clients[i].From)
		defer web.CloseIdleConnections()
		asking.Go(func() {
			l.Clients[i].each(time.Duration(l.Seconds)*time.Second, func(n int) {
				for range n {
					asking.Go(func() { c.ask(ctx, web, l.URL, i, l.Clients[i].Key) })
				}
			})
		})
	}
	asking.Wait()
	slices.Sort(c.took)
	c.P50, c.P99 = quantile(c.took, 0.5), quantile(c.took, 0.99)
	return &c.counts
}

// webFrom returns a client of HTTP whose connections come from an address of this machine, or from any.
func webFrom(address string) *http.Client {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if ip := net.ParseIP(address); ip != nil {
		dialer.LocalAddr = &net.TCPAddr{IP: ip}
	}
	return &http.Client{
		Timeout:   20 * time.Second,
		Transport: &http.Transport{DialContext: dialer.DialContext, MaxIdleConns: 4096, MaxIdleConnsPerHost: 4096},
	}
}

// each calls ask with a number of requests whenever these are due, for so long.
func (c *client) each(long time.Duration, ask func(n int)) {
	n, pause := c.Burst, time.Duration(c.EveryMillis)*time.Millisecond
	if c.PerSecond > 0 {
		n, pause = 1, time.Second/time.Duration(c.PerSecond)
	}
	start := time.Now()
	for at := time.Duration(0); at < long; at += pause {
		<-time.After(time.Until(start.Add(at)))
		ask(n)
	}
}

// quantile of sorted values, 0 of none.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))]
}

// counter counts answers. It is safe for concurrent use.
type counter struct {
	mu sync.Mutex
	counts
	took []float64
}

// question costs no points and one request.
const question = `{"query":"{__typename}"}`

// ask asks once.
func (c *counter) ask(ctx context.Context, web *http.Client, url string, i int, key string) {
	start := time.Now()
	status, body, err := post(ctx, web, url, key)
	took := float64(time.Since(start)) / float64(time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &c.Clients[i]
	if err != nil {
		a.None++
		return
	}
	c.took = append(c.took, took)
	a.count(status, body)
}

func post(ctx context.Context, web *http.Client, url, key string) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte(question)))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Api-Key", key)
	response, err := web.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	const most = 1 << 20
	body, err := io.ReadAll(io.LimitReader(response.Body, most))
	return response.StatusCode, body, err
}

// count enters an answer.
func (a *answers) count(status int, body []byte) {
	var told struct {
		Errors []struct {
			Extensions struct {
				Code string `json:"code"`
			} `json:"extensions"`
		} `json:"errors"`
		Extensions struct {
			RateLimit struct {
				StoreUnavailable bool `json:"storeUnavailable"`
			} `json:"rateLimit"`
		} `json:"extensions"`
	}
	if json.Unmarshal(body, &told) != nil {
		a.None++
		return
	}
	if told.Extensions.RateLimit.StoreUnavailable {
		a.Without++
	}
	code := ""
	if len(told.Errors) > 0 {
		code = told.Errors[0].Extensions.Code
	}
	switch {
	case status == http.StatusOK && code == "" && told.Extensions.RateLimit.StoreUnavailable:
		a.Local++
	case status == http.StatusOK && code == "":
		a.Store++
	case status == http.StatusTooManyRequests:
		a.Limited++
	case code == "OVERLOADED":
		a.Busy++
		a.Without++
	default:
		a.Other++
	}
}

// cells are those of the table of starved servers: of the limited, the one within its budget, and the blocked.
func (c *counts) cells(l load) []string {
	var all, without, none int
	for i := range c.Clients {
		a := &c.Clients[i]
		all += a.Store + a.Local + a.Limited + a.Busy + a.Other
		without += a.Without
		none += a.None
	}
	limited, within, blocked := &c.Clients[0], &c.Clients[1], &c.Clients[2]
	asked := within.Store + within.Local + within.Limited + within.Busy + within.Other
	return []string{
		digits(float64(all)), percent(without, all), digits(float64(limited.Store + limited.Local)),
		percent(limited.Store+limited.Local, int(math.Ceil(l.Clients[0].Allowed))),
		percent(within.Store+within.Local, asked), percent(within.Busy, asked), percent(within.Limited+within.Other, asked),
		digits(float64(blocked.Store + blocked.Local)), digits(float64(none)),
		duration(c.P50 * 1e6), duration(c.P99 * 1e6),
	}
}

func percent(part, whole int) string {
	if whole == 0 {
		return "–"
	}
	return digits(100*float64(part)/float64(whole)) + " %"
}
