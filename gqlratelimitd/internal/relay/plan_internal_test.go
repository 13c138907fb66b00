package relay

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

func TestTheActorOfARecordSaysFromWhichChangeItComes(t *testing.T) {
	t.Parallel()
	for _, actor := range []string{"", "ada", strings.Repeat("ü", 64), "eve (gqlratelimitd #9)"} {
		for _, revision := range []uint64{1, 1 << 60} {
			text := marked(actor, revision, maxActor)
			require.LessOrEqual(t, len(text), maxActor)
			got, ours := markOf(text)
			require.True(t, ours)
			require.Equal(t, revision, got)
		}
	}
	for _, actor := range []string{"", "ada", "gqlratelimitd", "ada (gqlratelimitd #)", "ada (gqlratelimitd #x)", "ada (gqlratelimitd #-1)", "ada (gqlratelimitd #1) "} {
		_, ours := markOf(actor)
		require.False(t, ours, actor)
	}
}

// TestAPlanLeavesEachRecordAsItsRuleSays applies plans of all kinds of records, and judges what is there then.
func TestAPlanLeavesEachRecordAsItsRuleSays(t *testing.T) {
	t.Parallel()
	now := time.Now().Truncate(time.Millisecond)
	rapid.Check(t, func(t *rapid.T) {
		var records []bucket.Override
		var intents []store.Intent
		for i := range rapid.IntRange(0, 6).Draw(t, "owners") {
			owner := bucket.Owner{Level: bucket.User, Name: fmt.Sprint(i)}
			if rapid.Bool().Draw(t, "intent") {
				in := store.Intent{Override: store.Override{Tenant: "acme", Revision: rapid.Uint64Range(1, 4).Draw(t, "revision")}}
				in.Owner, in.Actor, in.Reason, in.Blocked = owner, "ada", "why", true
				in.Removed = rapid.Bool().Draw(t, "removed")
				in.Applied = rapid.Uint64Range(0, in.Revision).Draw(t, "applied")
				if rapid.Bool().Draw(t, "ends") {
					in.Expires = now.Add(time.Duration(rapid.IntRange(-48, 48).Draw(t, "hours")) * time.Hour)
				}
				intents = append(intents, in)
			}
			if rapid.Bool().Draw(t, "record") {
				record := bucket.Override{Owner: owner, Blocked: true, Actor: "oncall", Reason: "why", SetAt: now}
				if rapid.Bool().Draw(t, "ours") {
					record.Actor = marked("ada", rapid.Uint64Range(1, 5).Draw(t, "from"), maxActor)
				}
				records = append(records, record)
			}
		}
		p := planOf(now, records, intents)
		after := map[bucket.Owner]bucket.Override{}
		for _, r := range records {
			after[r.Owner] = r
		}
		for _, i := range p.set {
			after[i.Owner] = recordOf(i)
		}
		for _, i := range p.remove {
			delete(after, i.Owner)
		}
		for n := range intents {
			i := &intents[n]
			is, there := after[i.Owner]
			from, ours := markOf(is.Actor)
			if there && (!ours || from > i.Revision) {
				require.True(t, slices.ContainsFunc(p.foreign, func(o bucket.Override) bool { return o.Owner == i.Owner }))
				require.False(t, i.Applied < i.Revision && i.Holds(now) && !ours, "what was set here afterwards replaces it")
				continue
			}
			require.Equal(t, i.Holds(now.Add(-keptAfterEnd)), there)
			require.True(t, !there || from == i.Revision, "revision %d", from)
		}
		for _, r := range records {
			_, ours := markOf(r.Actor)
			i := slices.IndexFunc(intents, func(i store.Intent) bool { return i.Owner == r.Owner })
			if i < 0 || !ours && intents[i].Applied == intents[i].Revision {
				require.Equal(t, r, after[r.Owner], "it is not the daemon's")
			}
		}
		// What was done once has not to be done again.
		var left []bucket.Override
		for _, r := range after {
			left = append(left, r)
		}
		for i := range intents {
			intents[i].Applied = intents[i].Revision
		}
		again := planOf(now, left, intents)
		require.Empty(t, again.set)
		require.Empty(t, again.remove)
		require.Empty(t, again.replaced)
	})
}
