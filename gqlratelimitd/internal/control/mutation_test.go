package control_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// mutation is how a method is called that changes something.
type mutation struct {
	// actor may, and action is what the log calls it.
	actor  access.Actor
	action access.Action
	// before makes what the call needs. It may be nil.
	before func(s *scene)
	// call calls it, as it should be or with a revision that is not there. Where nothing is expected it is nil.
	call, conflict func(s *scene, r control.Request) (any, error)
	// target, tenant, message and its name are what it leaves behind: a target as a pattern, and no message if nobody has to hear of it.
	// There is a target before, or after.
	target, tenant, message, name string
	was, is                       bool
	// again says that it may be done again.
	again bool
}

var owner = bucket.Owner{Level: bucket.User, Name: "zoe"}

func overrideInput(expected uint64, blocked bool) control.OverrideInput {
	in := control.OverrideInput{Tenant: "acme", Expected: expected, Override: bucket.Override{
		Owner: owner, Limit: "minute", Capacity: 7, Expires: time.Date(2026, 11, 22, 4, 0, 0, 0, time.UTC),
	}}
	if blocked {
		in.Override = bucket.Override{Owner: owner, Blocked: true}
	}
	return in
}

func allocateInput(expected uint64) control.AllocateInput {
	return control.AllocateInput{Tenant: "acme", Expected: expected, Allocations: &tiers.Allocations{
		Teams: map[string]map[string]*tiers.Limit{"web": {"minute": {Capacity: 600, Per: tiers.Minute}}},
	}}
}

// switchedUntil is when switches end. The Redis has the clock of the system.
var switchedUntil = time.Now().Add(48 * time.Hour)

func switchInput(expected uint64) control.SwitchInput {
	return control.SwitchInput{
		Scope: control.ScopeTenant, Name: "acme", Mode: bucket.Shadow, Until: switchedUntil, Expected: expected,
	}
}

// called makes a call of a method and its input.
func called[In, Out any](method func(*scene) func(control.Request, In) (Out, error), in In) func(*scene, control.Request) (any, error) {
	return func(s *scene, r control.Request) (any, error) { return method(s)(r, in) }
}

// mutations are all of them, by name.
var mutations = map[string]mutation{
	"Publish": {
		actor: administrator, action: access.PublishPolicy, target: "^policy$", message: control.MessagePolicy, was: true, is: true,
		call:     called(publishOf, control.PublishInput{Document: []byte(document), Expected: 1}),
		conflict: called(publishOf, control.PublishInput{Document: []byte(document), Expected: 2}),
	},
	"Revert": {
		actor: operator, action: access.RevertPolicy, target: "^policy$", message: control.MessagePolicy, was: true, is: true,
		call:     called(revertOf, control.RevertInput{To: 1, Expected: 1}),
		conflict: called(revertOf, control.RevertInput{To: 1, Expected: 2}),
	},
	"PutTenant": {
		actor: operator, action: access.AssignTenant, target: "^tenant acme$", tenant: "acme", message: control.MessageTenant, name: "acme", is: true,
		call:     called(putTenantOf, control.TenantInput{Tenant: "acme", Document: []byte(`{"tier":"pro"}`)}),
		conflict: called(putTenantOf, control.TenantInput{Tenant: "acme", Document: []byte(`{"tier":"pro"}`), Expected: 1}),
	},
	"RemoveTenant": {
		actor: operator, action: access.AssignTenant, target: "^tenant acme$", tenant: "acme", message: control.MessageTenant, name: "acme", was: true,
		before: func(s *scene) {
			_, err := s.PutTenant(s.ctx(), by(operator), control.TenantInput{Tenant: "acme", Document: []byte(`{"tier":"pro"}`)})
			require.NoError(s, err)
		},
		call:     called(removeTenantOf, control.RemoveTenantInput{Tenant: "acme", Expected: 1}),
		conflict: called(removeTenantOf, control.RemoveTenantInput{Tenant: "acme", Expected: 2}),
	},
	"Allocate": {
		actor: customer("acme"), action: access.SetAllocations, target: "^tenant acme$", tenant: "acme", message: control.MessageTenant, name: "acme", is: true,
		call: called(allocateOf, allocateInput(0)), conflict: called(allocateOf, allocateInput(1)),
	},
	"SetOverride": {
		actor: operator, action: access.SetOverride, target: "^override of user zoe of tenant acme, limit minute$", tenant: "acme",
		message: control.MessageOverrides, name: "acme", is: true,
		call: called(setOverrideOf, overrideInput(0, false)), conflict: called(setOverrideOf, overrideInput(1, false)),
	},
	"ClearOverride": {
		actor: operator, action: access.UnblockTenant, target: "^override of user zoe of tenant acme$", tenant: "acme",
		message: control.MessageOverrides, name: "acme", was: true,
		before: func(s *scene) {
			_, err := s.SetOverride(s.ctx(), by(operator), overrideInput(0, true))
			require.NoError(s, err)
		},
		call:     called(clearOverrideOf, control.ClearOverrideInput{OverrideKey: control.OverrideKey{Tenant: "acme", Owner: owner}, Expected: 1}),
		conflict: called(clearOverrideOf, control.ClearOverrideInput{OverrideKey: control.OverrideKey{Tenant: "acme", Owner: owner}, Expected: 2}),
	},
	"SwitchMode": {
		actor: operator, action: access.SwitchMode, target: "^mode of tenant acme$", tenant: "acme", is: true,
		call: called(switchModeOf, switchInput(0)), conflict: called(switchModeOf, switchInput(1)),
	},
	"EndModeSwitch": {
		actor: operator, action: access.EndModeSwitch, target: "^mode of tenant acme$", tenant: "acme", was: true,
		before: func(s *scene) {
			set, err := s.SwitchMode(s.ctx(), by(operator), switchInput(0))
			require.NoError(s, err)
			s.switched = set.Revision
		},
		call: func(s *scene, r control.Request) (any, error) {
			return s.EndModeSwitch(s.ctx(), r, control.EndSwitchInput{Scope: control.ScopeTenant, Name: "acme", Expected: s.switched})
		},
		conflict: func(s *scene, r control.Request) (any, error) {
			return s.EndModeSwitch(s.ctx(), r, control.EndSwitchInput{Scope: control.ScopeTenant, Name: "acme", Expected: s.switched + 1})
		},
	},
	"IssueToken": {
		actor: operator, action: access.IssueToken, target: "^token [a-z2-7]{13}$", is: true, again: true,
		call: called(issueTokenOf, access.TokenRequest{Subject: "pager", Roles: []access.Role{access.Operator}}),
	},
	"RevokeToken": {
		actor: operator, action: access.RevokeToken, target: "^token [a-z2-7]{13}$", was: true, is: true,
		before: func(s *scene) {
			issued, err := s.IssueToken(s.ctx(), by(administrator), access.TokenRequest{Subject: "ci", Roles: []access.Role{access.Operator}})
			require.NoError(s, err)
			s.token = issued.ID
		},
		call: func(s *scene, r control.Request) (any, error) {
			return s.RevokeToken(s.ctx(), r, control.RevokeTokenInput{ID: s.token})
		},
	},
	"RegisterWebhook": {
		actor: customer("acme"), action: access.RegisterWebhook, target: onWebhook, tenant: "acme", is: true, again: true,
		call: func(s *scene, r control.Request) (any, error) {
			return s.RegisterWebhook(s.ctx(), r, control.RegisterWebhookInput{Tenant: "acme", URL: hookURL})
		},
	},
	"ChangeWebhook": {
		actor: customer("acme"), action: access.ChangeWebhook, target: onWebhook, tenant: "acme", was: true, is: true, before: registered,
		call: onHook(func(s *scene, r control.Request, in control.WebhookInput) (any, error) {
			return s.ChangeWebhook(s.ctx(), r, control.ChangeWebhookInput{WebhookInput: in, Types: control.WebhookTypes()[:1]})
		}, 0),
		conflict: onHook(func(s *scene, r control.Request, in control.WebhookInput) (any, error) {
			return s.ChangeWebhook(s.ctx(), r, control.ChangeWebhookInput{WebhookInput: in, Types: control.WebhookTypes()[:1]})
		}, 1),
	},
	"RemoveWebhook": {
		actor: customer("acme"), action: access.RemoveWebhook, target: onWebhook, tenant: "acme", was: true, before: registered,
		call: onHook(removeHook, 0), conflict: onHook(removeHook, 1),
	},
	"RotateWebhook": {
		actor: operator, action: access.RotateWebhook, target: onWebhook, tenant: "acme", was: true, is: true, before: registered,
		call: onHook(rotateHook, 0), conflict: onHook(rotateHook, 1),
	},
	"TestWebhook": {
		actor: customer("acme"), action: access.TestWebhook, target: onWebhook, tenant: "acme", is: true, before: registered, again: true,
		call: onHook(testHook, 0), conflict: onHook(testHook, 1),
	},
	"ReplayWebhook": {
		actor: customer("acme"), action: access.ReplayWebhook, target: onWebhook, tenant: "acme", is: true, before: registered, again: true,
		call: onHook(replayHook, 0), conflict: onHook(replayHook, 1),
	},
}

func issueTokenOf(s *scene) func(control.Request, access.TokenRequest) (*control.IssuedToken, error) {
	return func(r control.Request, in access.TokenRequest) (*control.IssuedToken, error) {
		return s.IssueToken(s.ctx(), r, in)
	}
}

// withRequest are the methods that take a request: those that change something.
func withRequest() (names []string) {
	all := reflect.TypeFor[*control.Control]()
	for n := range all.NumMethod() {
		m := all.Method(n)
		for i := range m.Type.NumIn() {
			if m.Type.In(i) == reflect.TypeFor[control.Request]() {
				names = append(names, m.Name)
			}
		}
	}
	return names
}

func TestEveryMethodThatChangesSomethingIsAmongTheMutations(t *testing.T) {
	t.Parallel()
	require.Equal(t, slices.Sorted(maps.Keys(mutations)), withRequest())
}

// prepare makes what a mutation needs, with a policy.
func prepare(t *testing.T, m *mutation) *scene {
	t.Helper()
	cfg := control.Config{}
	of := m.action == access.SwitchMode || m.action == access.EndModeSwitch
	if of {
		cfg.Modes = modesOf(t)
	}
	s := newScene(t, cfg)
	if of {
		s.now = time.Now().UTC().Truncate(time.Microsecond)
	}
	s.publish(document, 0)
	if m.before != nil {
		m.before(s)
	}
	s.changed = 0
	return s
}

func TestEveryMutationHasOneAuditEntryAndOneMessageInItsTransaction(t *testing.T) {
	t.Parallel()
	for name, m := range mutations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := prepare(t, &m)
			before, messages := s.entries(), s.outbox()
			r := by(m.actor)
			_, err := m.call(s, r)
			require.NoError(t, err)
			entries := s.entries()
			require.Len(t, entries, len(before)+1)
			e := entries[len(before)]
			require.Equal(t, m.actor.Audit(), e.Actor)
			require.Equal(t, []string{string(m.action), m.tenant, r.Reason, r.Ticket, r.ID}, []string{e.Action, e.Tenant, e.Reason, e.Ticket, e.Request})
			require.Regexp(t, m.target, e.Target)
			require.Equal(t, s.now, e.Time)
			require.Equal(t, m.was, e.Before != nil, string(e.Before))
			require.Equal(t, m.is, e.After != nil, string(e.After))
			if m.message == "" {
				require.Equal(t, messages, s.outbox())
				return
			}
			require.NotEqual(t, e.RevisionBefore, e.RevisionAfter)
			newest := s.outbox()[len(s.outbox())-1]
			require.Equal(t, []any{m.message, m.name, e.RevisionAfter}, []any{newest.Kind, newest.Name, newest.Revision})
			require.NotContains(t, messages, newest)
			require.Equal(t, 1, s.changed)
		})
	}
}

func TestWhatIsRefusedChangesNothing(t *testing.T) {
	t.Parallel()
	for name, m := range mutations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := prepare(t, &m)
			before := s.dump()
			refused := func(change func(r *control.Request), want error) {
				t.Helper()
				r := by(m.actor)
				r.Key = "key"
				change(&r)
				_, err := m.call(s, r)
				require.ErrorIs(t, err, want)
				require.Equal(t, before, s.dump())
			}
			refused(func(r *control.Request) { r.Actor.Roles = nil }, access.ErrDenied)
			refused(func(r *control.Request) { r.Actor.Roles = []access.Role{access.Viewer} }, access.ErrDenied)
			refused(func(r *control.Request) { r.Actor.Method = "" }, access.ErrDenied)
			refused(func(r *control.Request) { r.Actor.Tenants = []string{"other"} }, access.ErrDenied)
			refused(func(r *control.Request) { r.Reason = " " }, control.ErrInvalid)
			refused(func(r *control.Request) { r.Reason = string(make([]byte, control.MaxReason+1)) }, control.ErrInvalid)
			refused(func(r *control.Request) { r.Reason = "it is\x1b[2Jfine" }, control.ErrInvalid)
			refused(func(r *control.Request) { r.Reason = "see https://me:hunter2@example.org" }, control.ErrInvalid)
			refused(func(r *control.Request) { r.Key = string(make([]byte, control.MaxKey+1)) }, control.ErrInvalid)
			if m.conflict != nil {
				r := by(m.actor)
				r.Key = "key"
				_, err := m.conflict(s, r)
				require.ErrorIs(t, err, store.ErrConflict)
				require.Equal(t, before, s.dump())
			}
			require.Zero(t, s.changed)
		})
	}
}

func TestARepeatIsAnsweredAsTheFirstRequestWasAndChangesNothing(t *testing.T) {
	t.Parallel()
	for name, m := range mutations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := prepare(t, &m)
			r := by(m.actor)
			r.Key = "key"
			first, err := m.call(s, r)
			require.NoError(t, err)
			after := s.dump()
			s.now = s.now.Add(control.AnswerLife - time.Second)
			again, err := m.call(s, r)
			require.NoError(t, err)
			require.Equal(t, written(t, first), written(t, again))
			require.Equal(t, m.message != "", s.changed == 1)
			if m.conflict != nil {
				_, err = m.conflict(s, r)
				require.ErrorIs(t, err, control.ErrKeyReused)
			}
			// The key of somebody else is another key, and what they may not they are not answered.
			other := r
			other.Actor = access.Actor{}
			_, err = m.call(s, other)
			require.ErrorIs(t, err, access.ErrDenied)
			require.Equal(t, after, s.dump())
			if m.again {
				return
			}
			other.Actor = m.actor
			other.Actor.Subject = "mallory"
			_, err = m.call(s, other)
			require.Error(t, err)
			require.Equal(t, after, s.dump())
			s.now = s.now.Add(2 * time.Second)
			_, err = m.call(s, r)
			require.Error(t, err, "the key is forgotten, and something else is there than was expected")
		})
	}
}

func written(t *testing.T, answer any) string {
	t.Helper()
	text, err := json.Marshal(answer)
	require.NoError(t, err)
	return string(text)
}
