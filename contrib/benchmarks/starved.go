package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/freeport"
)

// busyLoops is how many processes take the processors away from the server.
const busyLoops = 8

// anyProcessor leaves it to the system where a process runs.
const anyProcessor = -1

// situation is what a server is put into while clients ask it.
type situation struct {
	name string
	// server, others and loops are the processors of the server, of Redis and the load, and of the busy loops.
	server, others, loops int
	busy                  bool
	policy                string
	load                  load
}

// The policies name no fail mode, so that the default holds.
const (
	steadyPolicy = `
version: 1
default: within
tiers:
  limited: {limits: {requests: {unit: requests, capacity: 50, per: second}}}
  within: {limits: {requests: {unit: requests, capacity: 400, per: second}}}
tenants:
  demo-free: {tier: limited}
  demo-pro: {tier: within}
  demo-enterprise: {tier: within}
`
	burstPolicy = `
version: 1
default: within
tiers:
  limited: {limits: {requests: {unit: requests, capacity: 60, per: minute}}}
  within: {limits: {requests: {unit: requests, capacity: 400, per: second}}}
tenants:
  demo-free: {tier: limited}
  demo-pro: {tier: within}
  demo-enterprise: {tier: within}
`
)

// The accounts of the example, the parts that they play, and its namespace in Redis.
const (
	exampleNamespace = "example"

	limitedKey = "demo-free"
	withinKey  = "demo-pro"
	blockedKey = "demo-enterprise"
)

// situations are those of the report.
func situations(seconds int) []situation {
	// Each client has an address of its own, so that the bounds of addresses hold for it alone.
	steady := load{Seconds: seconds, Clients: []client{
		{Key: limitedKey, From: "127.0.0.2", PerSecond: 100, Allowed: 50 + 50*float64(seconds)},
		{Key: withinKey, From: "127.0.0.3", PerSecond: 100},
		{Key: blockedKey, From: "127.0.0.4", PerSecond: 20},
	}}
	bursts := load{Seconds: seconds, Clients: []client{
		{Key: limitedKey, From: "127.0.0.2", Burst: 800, EveryMillis: 1300, Allowed: 60 + float64(seconds)},
		{Key: withinKey, From: "127.0.0.3", PerSecond: 50},
		{Key: blockedKey, From: "127.0.0.4", PerSecond: 20},
	}}
	return []situation{
		{name: "quiet", server: anyProcessor, others: anyProcessor, policy: steadyPolicy, load: steady},
		{name: "eight busy loops on the processor of the server", server: 0, others: 1, loops: 0, busy: true, policy: steadyPolicy, load: steady},
		{name: "eight busy loops on all processors", server: anyProcessor, others: anyProcessor, loops: anyProcessor, busy: true, policy: steadyPolicy, load: steady},
		{name: "bursts of 800 requests", server: anyProcessor, others: anyProcessor, policy: burstPolicy, load: bursts},
	}
}

// starved puts the server of the example, with Redis, into each situation, and counts how it decides. With a commit
// it does the same with the server of that one.
func starved(ctx context.Context, commit string, seconds int) (string, error) {
	t := &table{
		title: "A starved server",
		note: fmt.Sprintf("The example with Redis, for %d s each. Limited: a tenant that asks for twice its budget, and what of the budget it "+
			"got; within: a tenant below its budget; blocked: a tenant that an override record blocks.", seconds),
		header: []string{
			"", "decided", "without the store", "limited: admitted", "of its budget", "within: admitted", "refused as busy", "refused otherwise",
			"blocked: served", "no answer", "p50", "p99",
		},
	}
	var ordeals []ordeal
	for _, s := range situations(seconds) {
		ordeals = append(ordeals, ordeal{s.name, func(ctx context.Context, room, binary string) ([]string, error) {
			counts, err := s.measure(ctx, room, binary)
			if err != nil {
				return nil, err
			}
			return counts.cells(s.load), nil
		}})
	}
	return t.fill(ctx, commit, ordeals)
}

// stage has the processes of a situation.
type stage struct {
	ctx     context.Context
	end     context.CancelFunc
	running []*exec.Cmd
}

// start starts a process on one processor, or on any.
func (s *stage) start(processor int, part, name string, args ...string) error {
	cmd := pinned(s.ctx, processor, name, args...)
	cmd.Env = append(os.Environ(), role+"="+part)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	s.running = append(s.running, cmd)
	return nil
}

// close kills all processes.
func (s *stage) close() {
	s.end()
	for _, cmd := range s.running {
		// It was killed: how it ended says nothing.
		_ = cmd.Wait()
	}
}

// pinned is a command on one processor, or on any.
func pinned(ctx context.Context, processor int, name string, args ...string) *exec.Cmd {
	if processor != anyProcessor {
		name, args = "taskset", append([]string{"-c", strconv.Itoa(processor), name}, args...)
	}
	//nolint:gosec // the commands are written in this package
	return exec.CommandContext(ctx, name, args...)
}

// measure starts what the situation consists of, and ends it.
func (s *situation) measure(ctx context.Context, room, binary string) (*counts, error) {
	ctx, end := context.WithCancel(ctx)
	on := &stage{ctx: ctx, end: end}
	defer on.close()
	address, err := s.serve(on, room, binary)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for range busyLoops {
		if !s.busy {
			break
		}
		if err := on.start(s.loops, roleLoop, self); err != nil {
			return nil, err
		}
	}
	s.load.URL = "http://" + address + "/query"
	asked, err := json.Marshal(s.load)
	if err != nil {
		return nil, err
	}
	clients := pinned(ctx, s.others, self)
	clients.Env = append(os.Environ(), role+"="+roleLoad)
	clients.Stdin, clients.Stderr = bytes.NewReader(asked), os.Stderr
	text, err := clients.Output()
	if err != nil {
		return nil, fmt.Errorf("the load: %w", err)
	}
	var found counts
	return &found, json.Unmarshal(text, &found)
}

// serve starts Redis and the server, and returns the address of the server.
func (s *situation) serve(on *stage, room, binary string) (string, error) {
	ports, err := freeport.Reserve(2)
	if err != nil {
		return "", err
	}
	port := strconv.Itoa(ports[0])
	redis, address := "127.0.0.1:"+port, "127.0.0.1:"+strconv.Itoa(ports[1])
	policy := filepath.Join(room, "policy.yaml")
	if err := os.WriteFile(policy, []byte(s.policy), 0o600); err != nil {
		return "", err
	}
	return address, errors.Join(
		on.start(s.others, "", "redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", room),
		on.start(s.server, "", binary, "-addr", address, "-redis", redis, "-policy", policy),
		listens(on.ctx, redis), listens(on.ctx, address), block(on.ctx, redis, blockedKey),
	)
}

// block sets the record by which support blocks a tenant.
func block(ctx context.Context, address, tenant string) error {
	client, err := redisclient.Open("redis://"+address, redisclient.Config{SocketTimeout: time.Second})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Namespace: exampleNamespace, Timeout: time.Second})
	if err != nil {
		return err
	}
	_, err = store.SetOverride(ctx, tenant, bucket.Override{Blocked: true, Reason: "starved", Actor: "benchmarks"})
	return err
}

// listens waits until somebody listens on the address.
func listens(ctx context.Context, address string) error {
	const patience, pause = 10 * time.Second, 20 * time.Millisecond
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("nobody listens on %s: %w", address, err)
		}
	}
}
