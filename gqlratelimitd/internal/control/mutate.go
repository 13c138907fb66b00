package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// Kinds of messages of the outbox.
const (
	// MessagePolicy says that there is another newest revision. It has no name.
	MessagePolicy = store.PolicyMessage
	// MessageTenant says that the record of a tenant was written or removed. Its name is that of the tenant.
	MessageTenant = store.TenantMessage
	// MessageOverrides says that an override of a tenant was set or removed. Its name is that of the tenant.
	MessageOverrides = store.OverridesMessage
)

// action is what an actor wants to do, and to which tenant: none is everything.
type action struct {
	access.Action
	tenant string
	// permitted says that it was looked at already whether the actor may, because the table of rights does not say it all.
	permitted bool
}

// authorize returns why an actor may not.
func (a *action) authorize(actor access.Actor) error {
	if a.permitted {
		return nil
	}
	return access.Authorize(actor, a.Action, a.tenant)
}

// effect returns the action that a change of a tenant, team or user comes to, by whether they were blocked before it and are after it: rights and
// the audit log follow what a change does, whatever it is written as.
func (a action) effect(d *done) action {
	switch {
	case d.blocked && (!d.wasBlocked || a.Action == access.SetOverride):
		// An override that blocks does nothing else.
		a.Action = access.BlockTenant
	case d.wasBlocked && !d.blocked:
		a.Action = access.UnblockTenant
	}
	return a
}

// done is what a change has done, for the audit log and for who has to hear of it.
type done struct {
	target        string
	before, after any
	// revisions are those of the target before and after.
	revisionBefore, revisionAfter uint64
	// wasBlocked and blocked say whether somebody whom it is about was blocked by the target before, and is after. See [action.effect].
	wasBlocked, blocked bool
	// kind and name are those of the message, if there is one.
	kind, name string
	// last is what is done before the commit, once all else was. It may be called several times, and does it once. Nil is nothing.
	last func() error
}

// mutate does everything that all changes have in common. The input tells requests apart. First check says what is wrong with it by
// itself, and then change does what is asked for, and returns the answer: it can be written as JSON and read again, and holds no
// secret where it is kept. Who may not do what the change comes to has changed nothing.
func mutate[T any](
	ctx context.Context, c *Control, r Request, a action, input any, check func() error, change func(tx *store.Tx) (T, done, error),
) (answer T, _ error) {
	var none T
	request, repeated, err := asked(ctx, c, &r, &a, input, check, &answer)
	if repeated || err != nil {
		return answer, toldTo(r.Actor, err)
	}
	told := false
	err = c.cfg.Store.Change(ctx, func(tx *store.Tx) error {
		// It may be the second try.
		told = false
		if repeated, err := repeat(&tx.View, tx.Now(), &r, request, &answer); repeated || err != nil {
			return err
		}
		result, d, err := change(tx)
		if err != nil {
			return err
		}
		does := a.effect(&d)
		if err := does.authorize(r.Actor); err != nil {
			return err
		}
		if err := note(ctx, tx, &r, does, &d); err != nil {
			return err
		}
		if d.kind != "" {
			told = true
			if err := tx.Enqueue(d.kind, d.name, d.revisionAfter); err != nil {
				return err
			}
		}
		answer = result
		if err := keep(tx, &r, request, result); err != nil || d.last == nil {
			return err
		}
		return d.last()
	})
	if err != nil {
		return none, toldTo(r.Actor, err)
	}
	if told && c.cfg.Changed != nil {
		c.cfg.Changed()
	}
	return answer, nil
}

// asked looks at a request before anything is done. It returns what tells it apart, and whether the answer is that to the first request with the key.
func asked[T any](
	ctx context.Context, c *Control, r *Request, a *action, input any, check func() error, answer *T,
) (request []byte, repeated bool, _ error) {
	if err := a.authorize(r.Actor); err != nil {
		return nil, false, err
	}
	if err := r.check(); err != nil {
		return nil, false, err
	}
	request, err := fingerprint(input)
	if err != nil {
		return nil, false, err
	}
	// What was right may be wrong now, and is a repeat all the same.
	if r.Key != "" {
		err = c.cfg.Store.Read(ctx, func(v *store.View) (err error) {
			repeated, err = repeat(v, c.now(), r, request, answer)
			return err
		})
	}
	if err == nil && !repeated {
		err = check()
	}
	return request, repeated, err
}

// toldTo is an error as it is told to an actor: a conflict says who has written what is there.
func toldTo(actor access.Actor, err error) error {
	if conflict := (*ConflictError)(nil); errors.As(err, &conflict) {
		conflict.By = actor.Told(conflict.By)
	}
	return err
}

// repeat reads the answer to the first request with the key, and reports whether there is one.
func repeat[T any](v *store.View, now time.Time, r *Request, request []byte, answer *T) (bool, error) {
	if r.Key == "" {
		return false, nil
	}
	kept, err := v.Answer(r.answerID(), now)
	if kept == nil || err != nil {
		return false, err
	}
	if string(kept.Request) != string(request) {
		return false, ErrKeyReused
	}
	if err := json.Unmarshal(kept.Body, answer); err != nil {
		return false, fmt.Errorf("control: the answer to the first request: %w", err)
	}
	return true, nil
}

// keep keeps an answer for repeats.
func keep(tx *store.Tx, r *Request, request []byte, answer any) error {
	if r.Key == "" {
		return nil
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return fmt.Errorf("control: %w", err)
	}
	return tx.KeepAnswer(&store.Answer{ID: r.answerID(), Request: request, Body: body, Expires: tx.Now().Add(AnswerLife)})
}

// note writes the entry of the audit log.
func note(ctx context.Context, tx *store.Tx, r *Request, a action, d *done) error {
	e, err := entryOf(tx, r, a, d)
	if err != nil {
		return err
	}
	_, err = audit.Append(ctx, tx.Audit(), e)
	return entryProblem(err)
}

// entryOf returns the entry of the audit log that says what was done.
func entryOf(tx *store.Tx, r *Request, a action, d *done) (audit.Entry, error) {
	before, err := value(d.before)
	if err != nil {
		return audit.Entry{}, err
	}
	after, err := value(d.after)
	return audit.Entry{
		Time: tx.Now(), Actor: r.Actor.Audit(), Action: string(a.Action), Target: d.target, Tenant: a.tenant,
		RevisionBefore: d.revisionBefore, RevisionAfter: d.revisionAfter, Before: before, After: after,
		Reason: r.Reason, Ticket: r.Ticket, Request: r.ID,
	}, err
}

// entryProblem says of an entry that was refused what is wrong with the request.
func entryProblem(err error) error {
	if wrong := (*audit.EntryError)(nil); errors.As(err, &wrong) {
		return &InvalidError{Field: wrong.Field, Problem: wrong.Problem, Err: err}
	}
	return err
}

// value is the target before or after a change. Nil is none.
func value(v any) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	return text, nil
}
