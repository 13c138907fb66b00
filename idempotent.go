package ratelimit

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/backend"
	"github.com/gqlgen-ratelimit/ratelimit/internal/observe"
	"github.com/gqlgen-ratelimit/ratelimit/internal/sink"
)

// keyExtension is where a WebSocket operation carries its key.
const keyExtension = "idempotencyKey"

// claim returns the claim of the operation, nil if it has no key. A subscription and an anonymous
// subject have none: the first has no single answer, and the second cannot be told from others
// behind the same address.
func (e *Extension) claim(opCtx *graphql.OperationContext, subject Subject) (*idempotency.Claim, error) {
	if e.cfg.Idempotency.Disabled {
		return nil, nil
	}
	key, found, err := requestKey(opCtx, e.cfg.Idempotency.Headers)
	kind := opCtx.Operation.Operation
	if err != nil || subject.Anonymous || kind == ast.Subscription {
		return nil, err
	}
	required := e.cfg.Idempotency.RequireKey && kind == ast.Mutation
	if !found && !required {
		return nil, nil
	}
	uploads := hasUpload(reflect.ValueOf(opCtx.Variables), 0)
	switch {
	case !found && uploads:
		return nil, nil
	case !found:
		return nil, errKeyMissing
	case uploads:
		return nil, errUploadKey
	}
	fingerprint, err := idempotency.NewFingerprint(opCtx.RawQuery, opCtx.Operation.Name, opCtx.Variables)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", idempotency.ErrKeyInvalid, err)
	}
	claim := &idempotency.Claim{
		Subject:     claimSubject(subject),
		Key:         key,
		Fingerprint: fingerprint,
		Attempt:     idempotency.NewAttemptID(),
		Lease:       e.cfg.Idempotency.Lease,
		TTL:         e.cfg.Idempotency.MutationTTL,
		ReuseAsNew:  e.cfg.Idempotency.ReuseAsNew,
	}
	if kind == ast.Query {
		claim.TTL = e.cfg.Idempotency.QueryTTL
		claim.FreeRepeats = e.cfg.Idempotency.FreeRepeats
	} else {
		claim.RefuseAbandoned = e.cfg.Idempotency.RefuseAbandoned
	}
	return claim, nil
}

// claimable says whether a key is honoured. What costs nothing is admitted without end under limits that
// count points alone, and so would be its records.
func (op *operation) claimable(points int64) bool {
	if points > 0 || !enforces(&op.rules) {
		return true
	}
	for _, b := range judged(&op.rules) {
		for _, limit := range b.Limits.All() {
			charges := limit.Unit == bucket.Requests || limit.Unit == bucket.Records
			if charges && limit.Mode == bucket.Enforce && !limit.Soft {
				return true
			}
		}
	}
	return false
}

// requestKey returns the key that the client sent: in a header, and on a WebSocket in the
// operation's extensions, because there the headers belong to the connection.
func requestKey(opCtx *graphql.OperationContext, headers []string) (key idempotency.Key, found bool, err error) {
	if sink.Upgrades(opCtx.Headers) {
		value, found := opCtx.Extensions[keyExtension]
		if !found {
			return "", false, nil
		}
		text, isString := value.(string)
		if !isString {
			return "", false, fmt.Errorf("%w: extensions.%s is not a string", idempotency.ErrKeyInvalid, keyExtension)
		}
		key, err := idempotency.ParseKey(text)
		return key, err == nil, err
	}
	for _, header := range headers {
		values := opCtx.Headers.Values(header)
		if len(values) == 0 {
			continue
		}
		if len(values) > 1 {
			return "", false, fmt.Errorf("%w: the header is given %d times", idempotency.ErrKeyInvalid, len(values))
		}
		other, err := idempotency.ParseKey(values[0])
		if err != nil {
			return "", false, err
		}
		if found && other != key {
			return "", false, fmt.Errorf("%w: several headers give different keys", idempotency.ErrKeyInvalid)
		}
		key, found = other, true
	}
	return key, found, nil
}

// claimSubject names the owner of a key: two users of one tenant never meet. Each part is preceded
// by its length, so that no two subjects have one name.
func claimSubject(s Subject) string {
	return fmt.Sprintf("%d:%s%d:%s%d:%s", len(s.Tenant), s.Tenant, len(s.Team), s.Team, len(s.User), s.User)
}

// maxUploadDepth is how deep uploads are looked for. What is deeper counts as one.
const maxUploadDepth = 64

var uploadType = reflect.TypeFor[graphql.Upload]()

// hasUpload finds files among the variables. Their content is not part of a fingerprint, so two
// different files would pass for one. Coercion makes slices of many types, hence the reflection.
func hasUpload(value reflect.Value, depth int) bool {
	if depth > maxUploadDepth {
		return true
	}
	switch value.Kind() {
	case reflect.Interface, reflect.Pointer:
		return hasUpload(value.Elem(), depth+1)
	case reflect.Map:
		for entries := value.MapRange(); entries.Next(); {
			if hasUpload(entries.Value(), depth+1) {
				return true
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range value.Len() {
			if hasUpload(value.Index(i), depth+1) {
				return true
			}
		}
	case reflect.Struct:
		return value.Type() == uploadType
	default:
	}
	return false
}

// keyed wraps the handler of an operation that holds a claim: the lease is renewed while it works,
// and the claim is settled before the answer is sent.
func (e *Extension) keyed(op *operation, next graphql.ResponseHandler) graphql.ResponseHandler {
	var settle sync.Once
	return func(ctx context.Context) (response *graphql.Response) {
		stop := e.renewLease(ctx, op)
		defer stop()
		// Deferred, because a panic in a later extension leaves a mutation that ran: without an answer it
		// is settled as done, so that no repeat runs it again.
		defer settle.Do(func() { e.settleClaim(ctx, op, response) })
		return next(ctx)
	}
}

// begin lets the later extensions see an operation that holds a claim. A panic in one of them is settled as
// what it left, which is nothing unless it had run the operation.
func (e *Extension) begin(ctx context.Context, op *operation, next graphql.OperationHandler) graphql.ResponseHandler {
	begun := false
	defer func() {
		if !begun {
			e.settleClaim(ctx, op, nil)
		}
	}()
	handler := next(ctx)
	begun = true
	return e.keyed(op, handler)
}

// renewLease renews the claim three times in each lease until the returned function is called.
func (e *Extension) renewLease(ctx context.Context, op *operation) (stop func()) {
	every := e.cfg.Idempotency.Lease / 3
	// The client may leave while the operation still works: the lease outlives its context.
	ctx = context.WithoutCancel(ctx)
	tenant := op.snapshot().Subject.Tenant

	var mu sync.Mutex
	stopped := false
	var timer *time.Timer
	renew := func() {
		held, err := op.store.Renew(ctx, tenant, op.claim)
		mu.Lock()
		defer mu.Unlock()
		// An attempt that lost its claim has nothing left to renew; a store that is away may return.
		if !stopped && (held || err != nil) {
			timer.Reset(every)
		}
	}
	mu.Lock()
	timer = time.AfterFunc(every, renew)
	mu.Unlock()
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		timer.Stop()
	}
}

// settlePauses are the pauses between the tries to settle a claim. They are worth a wait: a claim that
// stays in flight lets a later attempt run the operation again, or leaves its outcome unknown.
var settlePauses = [...]time.Duration{0, 20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond}

// patiently tries until it succeeds or there are no more pauses, and returns the last error.
func patiently(try func() error) (err error) {
	for _, pause := range settlePauses {
		time.Sleep(pause) //nolint:forbidigo // a pause between tries, short and bounded
		if err = try(); err == nil {
			return nil
		}
	}
	return err
}

// settleClaim ends the claim: with the answer of a mutation, which is stored before it is sent, or
// by releasing the key, the points and the record if nothing ran.
func (e *Extension) settleClaim(ctx context.Context, op *operation, response *graphql.Response) {
	// The client may be gone; its next attempt still needs the answer.
	ctx = context.WithoutCancel(ctx)
	settlement := bucket.Settlement{
		Claim: &bucket.ClaimSettlement{
			Tenant:  op.snapshot().Subject.Tenant,
			Claim:   op.claim,
			Outcome: idempotency.Done,
		},
	}
	corrected := op.endClaim()
	if op.ran(response) {
		settlement.Claim.Answer = e.answerToStore(ctx, op, response)
		if corrected.points != 0 {
			settlement.Receipt, settlement.Actual = op.paid.receipt, op.worth(corrected)
		}
	} else {
		settlement.Claim.Outcome = idempotency.Released
		settlement.Receipt = op.paid.receipt
		// Its request stays taken: what another extension refuses under ever new keys has to end somewhere.
		settlement.Actual = bucket.Amounts{{Unit: bucket.Points}, {Unit: bucket.Records}}
	}
	tries := 0
	var settled bucket.Settled
	err := patiently(func() (err error) {
		tries++
		settled, err = op.store.Settle(ctx, settlement)
		return err
	})
	e.claimSettled(ctx, op, corrected, &settled, tries, err)
	switch {
	case err != nil:
		e.cfg.Logger.ErrorContext(ctx, "ratelimit: a claim could not be settled: until its lease ends, repeats are told that "+
			"it is in flight, and after that the next one runs again, or is told that the outcome is unknown",
			slog.String("error", err.Error()), slog.Bool("mutation", op.mutation()))
	// A try before this one may have settled it although its reply was lost.
	case !settled.Applied && tries == 1:
		e.cfg.Logger.WarnContext(ctx, "ratelimit: an operation ended without its claim: its lease had run out while the store "+
			"was away or the process stood still, or its record is gone, and another attempt may have run as well",
			slog.Bool("mutation", op.mutation()))
	}
}

// ran says whether anything of the operation may have happened. A query always counts as run: if it
// could be released, a key would make what has no resolver, such as introspection, free.
func (op *operation) ran(response *graphql.Response) bool {
	if !op.mutation() || op.started.Load() {
		return true
	}
	return response != nil && hasData(response)
}

// claimSettled counts the correction that was to be made with the end of a claim, after so many tries.
func (e *Extension) claimSettled(ctx context.Context, op *operation, c correction, settled *bucket.Settled, tries int, err error) {
	if c.points == 0 {
		return
	}
	result := backend.SettledNow
	switch {
	case err != nil:
		result = backend.DroppedAway
	case settled.Applied:
	case tries > 1:
		result = backend.SettledBefore
	default:
		result = backend.SettledLate
	}
	e.reporter.Settled(ctx, &observe.Settlement{
		Tier: op.rules.Tier, Reason: c.reason, Result: string(result), Limits: settled.Limits,
	})
}
