package placement_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/placement"
)

func TestOfTwoWhoPublishOneIsTold(t *testing.T) {
	t.Parallel()
	record, err := placement.NewRecord(redistest.Plain(t, redistest.Start(t).Addr), "")
	require.NoError(t, err)
	ctx := t.Context()
	_, err = record.Newest(ctx)
	require.ErrorIs(t, err, placement.ErrEmpty)
	first := &placement.Map{Generation: 1, Candidates: 1, Stores: members("a", "b")}
	require.NoError(t, record.Publish(ctx, first, 0))
	require.NoError(t, record.Publish(ctx, first, 0), "a repeat succeeds")
	other := &placement.Map{Generation: 2, Candidates: 2, Stores: members("a", "b")}
	var conflict *placement.ConflictError
	require.ErrorAs(t, record.Publish(ctx, other, 0), &conflict)
	require.EqualValues(t, 1, conflict.There)
	next := first.Next([]placement.Member{{Name: "a"}, {Name: "b", Lost: true}})
	require.NoError(t, record.Publish(ctx, next, 1))
	require.ErrorAs(t, record.Publish(ctx, other, 1), &conflict)
	require.ErrorIs(t, record.Publish(ctx, other, 2), placement.ErrMap)
	newest, err := record.Newest(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 2, newest.Generation)
	require.True(t, newest.Stores[1].Lost)
	for tenant := range 50 {
		name := strings.Repeat("t", tenant+1)
		require.Equal(t, next.Home(name), newest.Home(name))
	}
}

func TestAMapWithMistakesNamesAllOfThem(t *testing.T) {
	t.Parallel()
	for want, text := range map[string]string{
		"generation 0":         `{"candidates":1,"stores":[{"name":"a"}]}`,
		"no store takes":       `{"generation":1,"candidates":1,"stores":[{"name":"a","draining":true}]}`,
		"two stores":           `{"generation":1,"candidates":1,"stores":[{"name":"a"},{"name":"a"}]}`,
		"the store \"a b\"":    `{"generation":1,"candidates":1,"stores":[{"name":"a b"}]}`,
		"3 candidates":         `{"generation":1,"candidates":3,"stores":[{"name":"a"}]}`,
		"which drains":         `{"generation":1,"candidates":1,"stores":[{"name":"a","draining":true},{"name":"b"}],"pins":{"x":"a"}}`,
		"unknown field":        `{"generation":1,"candidates":1,"stores":[{"name":"a"}],"more":1}`,
		"something follows":    `{"generation":1,"candidates":1,"stores":[{"name":"a"}]}{}`,
		"9007199254740991 fit": `{"generation":9007199254740992,"candidates":1,"stores":[{"name":"a"}]}`,
		"the pin of \"x\"":     `{"generation":1,"candidates":1,"stores":[{"name":"a"}],"pins":{"x":"c"}}`,
		"at most 4194304 fit":  strings.Repeat(" ", placement.MaxDocument+1),
		"0 stores: 1 to 256":   `{"generation":1,"candidates":1,"stores":[]}`,
	} {
		_, err := placement.Parse([]byte(text))
		require.ErrorIs(t, err, placement.ErrMap)
		require.ErrorContains(t, err, want)
	}
}

// scripted gives maps, and errors.
type scripted struct {
	mu   sync.Mutex
	next *placement.Map
	err  error
}

func (s *scripted) set(m *placement.Map, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next, s.err = m, err
}

func (s *scripted) Newest(context.Context) (*placement.Map, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next, s.err
}

// lines is a log that one goroutine writes and another reads.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// sleep is for a synctest bubble, where it takes no time.
func sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

func TestAFollowerAppliesNewerMapsAndKeepsTheOldOneOtherwise(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, m := twoStores()
		var log lines
		s, err := placement.New(t.Context(), placement.Config{Open: w.open, Observe: placement.ObserveConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))}}, m)
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		source := &scripted{err: errors.New("nobody answers")}
		ctx, end := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { s.Follow(ctx, source, 0) })
		sleep(3500 * time.Millisecond)
		require.EqualValues(t, 1, s.Map().Generation)
		require.Equal(t, 1, strings.Count(log.String(), "nobody answers"), "it is said once")
		source.set(m.Next(members("a", "b", "c")), nil)
		sleep(2 * time.Second)
		require.EqualValues(t, 1, s.Map().Generation, "there is no c")
		require.Contains(t, log.String(), "the store c is refused")
		w.add("c")
		sleep(time.Second)
		require.EqualValues(t, 2, s.Map().Generation)
		source.set(m, nil)
		sleep(time.Second)
		require.EqualValues(t, 2, s.Map().Generation, "an older map takes nobody's place")
		end()
		wg.Wait()
	})
}
