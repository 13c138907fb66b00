package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/event"
)

// served is what an instance says that was told this.
func served(events ...event.Event) *Activity {
	t := new(told)
	for _, e := range events {
		t.hear(e)
	}
	a := &Activity{Version: Version, Instance: "one", Run: "1", To: noon}
	t.add(a)
	return a
}

func TestAnInstanceSaysWhatItServesAndRefuses(t *testing.T) {
	t.Parallel()
	one := event.PolicyApplied{At: noon, Revision: 1, Hash: "h1", Origin: "feed"}
	bad := event.PolicyRefused{At: noon.Add(time.Second), Revision: 2, Hash: "h2", Cause: "check", Error: "no store \x1b"}
	refused := &Refused{Revision: 2, Hash: "h2", Cause: "check", Error: `no store \x1b`, At: noon.Add(time.Second)}
	state := func(e event.PolicyState) event.PolicyState {
		e.At = noon
		return e
	}
	for name, c := range map[string]struct {
		told   []event.Event
		serves uint64
		want   *Feed
	}{
		"nothing":                   {nil, 0, nil},
		"a policy of the feed":      {[]event.Event{one}, 1, &Feed{State: "current"}},
		"a refusal":                 {[]event.Event{one, bad}, 1, &Feed{State: "current", Refused: refused}},
		"the same policy again":     {[]event.Event{one, bad, event.PolicyApplied{At: noon.Add(time.Hour), Revision: 1, Again: true, Origin: "last_good"}}, 1, &Feed{State: "current"}},
		"a later one":               {[]event.Event{one, bad, event.PolicyApplied{At: noon, Revision: 3, Origin: "feed"}}, 3, &Feed{State: "current"}},
		"the disk, while refusing":  {[]event.Event{bad, event.PolicyApplied{At: noon, Revision: 1, Origin: "last_good"}}, 1, &Feed{State: "current", Refused: refused}},
		"a start without the feed":  {[]event.Event{event.PolicyApplied{At: noon, Origin: "first"}, state(event.PolicyState{To: "never", Age: time.Hour, Error: "away"})}, 0, &Feed{State: "never", Failure: "away"}},
		"a feed that is away":       {[]event.Event{one, state(event.PolicyState{To: "stale", Age: time.Minute, Error: "away"})}, 1, &Feed{State: "stale", Asked: noon.Add(-time.Minute), Failure: "away"}},
		"a feed that is back":       {[]event.Event{one, state(event.PolicyState{To: "stale", Error: "away"}), state(event.PolicyState{From: "stale", To: "current"})}, 1, &Feed{State: "current"}},
		"a disk that takes nothing": {[]event.Event{one, state(event.PolicyState{From: "current", To: "current", Unsaved: "full"})}, 1, &Feed{State: "current", Unsaved: "full"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := served(c.told...)
			require.Equal(t, c.want, a.Feed)
			if c.want == nil {
				require.Nil(t, a.Policy)
				return
			}
			require.Equal(t, c.serves, a.Policy.Revision)
			require.Equal(t, noon, a.Policy.Applied, "since when it holds")
		})
	}
}

func TestWhatAnInstanceServesFitsAndErrorsAreCutFirst(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\x01", 4000)
	applied := event.PolicyApplied{Revision: 1, Author: "ada", Reason: "ticket 16", Origin: "feed"}
	errs := []event.Event{event.PolicyRefused{Revision: 2, Cause: "check", Error: long}, event.PolicyState{To: "stale", Error: long, Unsaved: long}}
	read := func(a *Activity) *Activity {
		got := new(Activity)
		require.NoError(t, got.decode(a.encode()))
		return got
	}
	a := read(served(append(errs, applied)...))
	require.Equal(t, "ticket 16", a.Policy.Reason)
	require.Nil(t, a.Feed.Refused, "a policy of the feed takes its place")
	require.Empty(t, a.Feed.Failure+a.Feed.Unsaved)

	whole := served(append([]event.Event{applied}, errs...)...)
	a = read(whole)
	require.Equal(t, "ticket 16", a.Policy.Reason)
	require.Equal(t, "too long to be reported: see the log of the instance", a.Feed.Refused.Error)
	require.Equal(t, uint64(2), a.Feed.Refused.Revision)
	require.NotEmpty(t, whole.Feed.Failure, "what others have is not changed")

	applied.Reason, applied.Author = long, long
	var switches []event.ModeSwitch
	for i := range maxModes {
		switches = append(switches, event.ModeSwitch{Tenant: fmt.Sprint(i), AtMost: "warn", Until: noon.Add(time.Hour), Reason: long, By: long})
	}
	a = read(served(applied, event.ModeSwitched{State: "current", InForce: switches}))
	require.Equal(t, uint64(1), a.Policy.Revision)
	require.Empty(t, a.Policy.Reason)
	require.Less(t, len(a.Modes.InForce), maxModes)
	require.NotEmpty(t, a.Modes.InForce)
	require.Equal(t, "current", a.Modes.State)
}

func TestAChangeIsWrittenWithTheNextWrite(t *testing.T) {
	t.Parallel()
	r := &Reporter{told: new(told), counter: newCounter(names{}), pending: newPending(), written: noon}
	at := func(after time.Duration, last bool) *Activity { return r.activity(noon.Add(after), last) }
	require.Nil(t, at(time.Second, false), "there is nothing to say")
	r.told.hear(event.PolicyApplied{Revision: 1, Origin: "feed"})
	require.NotNil(t, at(2*time.Second, false))
	require.Nil(t, at(3*time.Second, false))
	r.told.hear(event.PolicyRefused{Revision: 2})
	require.Equal(t, uint64(2), at(4*time.Second, false).Feed.Refused.Revision)
	require.Nil(t, at(8*time.Second, false))
	require.NotNil(t, at(9*time.Second, false), "an instance that changes nothing says that it lives")
	require.True(t, at(9*time.Second, true).Ended)
}

func TestWhateverInstancesSayASummaryIsBounded(t *testing.T) {
	t.Parallel()
	s := summing{tenants: make(map[string]*Tenant), operations: make(map[string]*Counts), runs: make(map[string]*Instance)}
	const size = 16 << 10
	for i := range 2 * maxHeld / size {
		s.add(&Activity{Instance: fmt.Sprint(i), size: size, seen: noon})
	}
	s.add(&Activity{Instance: "0", size: size / 2, seen: noon, Dropped: 1})
	all := s.summary(noon)
	require.Len(t, all.Instances, maxHeld/size)
	require.Equal(t, maxHeld/size, all.Unreadable)
	require.Equal(t, uint64(1), all.Instances[0].Dropped, "one that is listed says more")
}

func TestNamesOfInstancesAreChecked(t *testing.T) {
	t.Parallel()
	require.NoError(t, CheckInstanceName(InstanceName()))
	first, second := InstanceName(), InstanceName()
	require.NotEqual(t, first, second)
	require.Error(t, CheckInstanceName("\xff"))
	for _, name := range []string{"", "a\x00b", strings.Repeat("n", MaxInstanceName+1)} {
		require.Error(t, CheckInstanceName(name))
		require.ErrorIs(t, new(Activity).decode((&Activity{Version: Version, Instance: name}).encode()), ErrUnreadable)
	}
}
