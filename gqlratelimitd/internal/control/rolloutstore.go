package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/rollout"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// RolloutStore is where roll-outs are kept, for the [rollout.Driver] of the daemon. What is saved there is done by the control plane itself: each
// step, and each halt, has an entry in the audit log by [access.System], in the same transaction. What is measured in between has none.
func (c *Control) RolloutStore() rollout.Store { return rolloutStore{c} }

type rolloutStore struct{ c *Control }

// Load implements [rollout.Store].
func (s rolloutStore) Load(ctx context.Context) (there rollout.Situation, _ error) {
	err := s.c.cfg.Store.Read(ctx, func(v *store.View) (err error) {
		there, err = situation(v)
		return err
	})
	return there, err
}

// Save implements [rollout.Store].
func (s rolloutStore) Save(ctx context.Context, next *rollout.State, publish *rollout.Publication) error {
	err := s.c.cfg.Store.Change(ctx, func(tx *store.Tx) error {
		was, err := situation(&tx.View)
		if err != nil {
			return err
		}
		before := tx.Head().Policy
		if err := s.c.putRollout(tx, next, publish); err != nil {
			return err
		}
		if publish == nil && was.State != nil && was.State.Phase == next.Phase {
			return nil
		}
		return s.note(ctx, tx, was.State, next, publish, before)
	})
	if errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("%w: %w", rollout.ErrConflict, err)
	}
	if err == nil && publish != nil && s.c.cfg.Changed != nil {
		s.c.cfg.Changed()
	}
	return err
}

// note writes what happens by itself into the audit log, and tells those who have to hear of a revision.
func (s rolloutStore) note(ctx context.Context, tx *store.Tx, was, next *rollout.State, publish *rollout.Publication, before uint64) error {
	// To halt and to be ended by somebody else's revision are one right: neither publishes anything.
	a, reason := action{Action: access.HaltRollout}, next.Why
	if publish != nil {
		a.Action, reason = access.AdvanceRollout, publish.Reason
	}
	r := Request{Actor: access.System(rollout.Actor), Reason: reason}
	if err := a.authorize(r.Actor); err != nil {
		return err
	}
	var words *Rollout
	if was != nil {
		words = rolloutOf(was)
	}
	d := rolloutDone(words, rolloutOf(next), before, publish)
	e, err := entryOf(tx, &r, a, &d)
	if err != nil {
		return err
	}
	if _, err := audit.Append(ctx, tx.Audit(), e); err != nil {
		return err
	}
	if d.kind == "" {
		return nil
	}
	return tx.Enqueue(d.kind, d.name, d.revisionAfter)
}

// situation reads what there is.
func situation(v *store.View) (there rollout.Situation, _ error) {
	head, err := v.Head()
	if err != nil {
		return there, err
	}
	there.Newest = head.Policy
	kept, err := v.Rollout()
	if err != nil || kept == nil {
		return there, err
	}
	there.State = &rollout.State{}
	if err := json.Unmarshal(kept.State, there.State); err != nil {
		return there, fmt.Errorf("control: the roll-out: %w", err)
	}
	// One of a newer daemon that says less would be out of its plan.
	if s := there.State; s.Step < 0 || s.Step > len(s.Plan) || s.Active() && s.Step == len(s.Plan) {
		return there, errors.New("control: the roll-out cannot be read")
	}
	return there, nil
}

// version is that of what is kept, 0 for nothing.
func version(kept *store.Rollout) uint64 {
	if kept == nil {
		return 0
	}
	return kept.Version
}

// putRollout saves a state, and publishes what is published with it.
func (c *Control) putRollout(tx *store.Tx, next *rollout.State, publish *rollout.Publication) error {
	text, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("control: %w", err)
	}
	if err := tx.PutRollout(&store.Rollout{Version: next.Version, State: text}); err != nil || publish == nil {
		return err
	}
	if len(c.cfg.Keys) > 0 {
		return errors.New("control: a revision takes a signature, which no step of a roll-out has")
	}
	return tx.Publish(&policy.Revision{
		Number: publish.Expected + 1, Document: publish.Document, Hash: policy.HashOf(publish.Document),
		Author: rollout.Actor, Reason: publish.Reason, Published: tx.Now().Truncate(time.Millisecond),
	}, publish.Expected)
}
