package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const (
	generous = `version: 1
default: free
tiers: {free: {limits: {day: {unit: requests, capacity: 1000, per: day, window: fixed}}}}
`
	// modest refuses nobody who asks five times.
	modest = `version: 1
default: free
tiers: {free: {limits: {day: {unit: requests, capacity: 5, per: day, window: fixed}}}}
`
)

// tenants are a number of them.
func tenants(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint("tenant-", i))
	}
	return names
}

func TestARollOutThatRefusesTooManyHaltsByItselfInAFleet(t *testing.T) {
	t.Parallel()
	f := newFleet(t, generous)
	all := tenants(40)
	// One in ten has less than it asks for.
	harsh := generous + "tenants:\n"
	for _, tenant := range all[:4] {
		harsh += "  " + tenant + ": {limits: {day: {unit: requests, capacity: 1, per: day, window: fixed}}}\n"
	}
	r := f.roll("?plan=0:1h,50:1h", harsh, 1)
	require.Equal(t, []any{"running", 1, uint64(2)}, []any{r.Phase, r.Step, r.Revision})
	f.serve(2)
	for _, tenant := range all {
		require.Zero(t, f.send(tenant, 3), "a candidate refuses nobody")
	}
	f.pass(2 * time.Minute)
	digests, err := f.digests.Digests(t.Context())
	require.NoError(t, err)
	require.Len(t, digests, 3)
	for i := range digests {
		require.Equal(t, r.ID, digests[i].Candidate, "%s judges it, whatever stands around its follower", digests[i].Instance)
	}
	r = f.until(func(r *progress) bool { return r.Phase == "halted" })
	require.InDelta(t, 0.1, r.Measured.Tenants, 0.02)
	require.Contains(t, r.Why, "% of tenants and 0.0 % of users are newly refused")
	f.pass(48 * time.Hour)
	require.Zero(t, f.send(all[0], 3))
	require.Equal(t, uint64(2), f.until(func(*progress) bool { return true }).Revision, "what is live stays")
	require.Contains(t, f.ask(http.StatusOK, http.MethodGet, "/v1/audit/entries", f.token, ""), `"rollout.halt"`)

	r = f.roll("/abort", "", 2)
	require.Equal(t, []any{"aborted", uint64(3)}, []any{r.Phase, r.Revision})
	require.Equal(t, generous, f.newest())
	f.serve(3)
	for _, i := range f.instances {
		_, candidate := tiers.CandidateOf(i.policy)
		require.Nil(t, candidate)
	}
}

func TestARollOutThatHarmsNobodyComesToAllTenantsOfAFleet(t *testing.T) {
	t.Parallel()
	f := newFleet(t, generous)
	all := tenants(60)
	f.roll("?plan=0:1h,50:1h", modest, 1)
	f.serve(2)
	for _, tenant := range all {
		require.Zero(t, f.send(tenant, 3))
	}
	f.pass(2 * time.Minute)
	r := f.until(func(r *progress) bool { return r.Measured != nil })
	require.Equal(t, "running", r.Phase)
	require.Contains(t, r.Remark, "is that what the change is for?")
	f.pass(time.Hour)
	r = f.until(func(r *progress) bool { return r.Step == 2 })
	require.Equal(t, uint64(3), r.Revision)
	f.serve(3)

	snapshot, err := tiers.Load([]byte(f.newest()), 3)
	require.NoError(t, err)
	stage, staged := snapshot.Stage()
	require.True(t, staged)
	require.Equal(t, 50, stage.Percent)
	var has, hasNot string
	for _, tenant := range all {
		if stage.Has(tenant) {
			has = tenant
		} else {
			hasNot = tenant
		}
	}
	require.Positive(t, f.send(has, 6), "it has asked nine times, and has five")
	require.Zero(t, f.send(hasNot, 6), "its turn has not come")
	for tenant, next := range map[string]bool{has: true, hasNot: false} {
		effective := f.ask(http.StatusOK, http.MethodGet, "/v1/orgs/"+tenant+"/ratelimit/policies", f.token, "")
		require.Equal(t, next, strings.Contains(effective, `"next":true`), effective)
		require.Equal(t, next, strings.Contains(effective, `"capacity":5,`), effective)
	}

	for _, tenant := range all {
		f.send(tenant, 1)
	}
	f.pass(2 * time.Minute)
	f.until(func(r *progress) bool { return r.Measured != nil })
	f.pass(time.Hour)
	r = f.until(func(r *progress) bool { return r.Phase == "done" })
	require.Equal(t, uint64(4), r.Revision)
	require.Equal(t, modest, f.newest())
	f.serve(4)
	require.Positive(t, f.send(hasNot, 1), "it holds for all")
	entries := f.ask(http.StatusOK, http.MethodGet, "/v1/audit/entries", f.token, "")
	require.Equal(t, 2, strings.Count(entries, `"rollout.advance"`), entries)
	require.Contains(t, entries, `"subject":"rollout","issuer":"gqlratelimitd","method":"system"`)
}

// journal is a log that is read while it is written.
type journal struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lines.Write(line)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lines.String()
}

func TestWhoeverHaltsARollOutIsInTheLog(t *testing.T) {
	t.Parallel()
	log := &journal{}
	f := &fleet{running: startAt(t, "redis://"+redistest.Start(t).Addr, time.Now, log)}
	f.token = f.first()
	f.roll("?plan=0:1h,50:1h", modest, 1)
	require.Equal(t, "halted", f.roll("/halt", "", 2).Phase)
	require.Contains(t, log.String(), `level=INFO msg="the roll-out has moved" id=rollout-2 phase=running step=1 revision=2 why=""`)
	require.Contains(t, log.String(), `level=WARN msg="the roll-out has moved" id=rollout-2 phase=halted step=1 revision=2 why="halted by me#`)
}

func TestWithoutARedisNoRollOutIsStarted(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir())
	token := r.first()
	refused := r.ask(http.StatusUnprocessableEntity, http.MethodPost, "/v1/ratelimit/rollout?plan=gradual", token, document, "If-Match", `"1"`)
	require.Contains(t, refused, "start it with -redis")
}
