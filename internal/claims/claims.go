// Package claims keeps what clients send under idempotency keys to one effect: it reads the key of a request, holds its
// claim while the operation runs, settles it, and keeps the answer for repeats.
//
// A reply of the store can be lost at each step. After a lost reply to a take nobody knows whether there is a claim. Where
// the operation is refused, or is a query, [Release] gives back the claim that the take may have written. A mutation that
// runs without its claim leaves it to the lease, as one whose server has died. A renewal is repeated until the
// store says that the claim has gone. A settlement is tried four times, within a fifth of a second, before the answer
// is sent. If that fails too, the lease decides: until it ends repeats are told that the operation is in flight, and
// after that the next attempt runs, or is told that the outcome is unknown.
package claims

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pending"
)

// MaxCodecRatio is how many times larger than a stored answer one may be that is given to the codec.
const MaxCodecRatio = 64

// Config says how keys are kept. It has no defaults: those of package ratelimit have been filled in.
type Config struct {
	// Schema declares the types of variables.
	Schema *ast.Schema
	// Headers may carry the key, in the spelling of http.Header.
	Headers []string
	// Required says that a mutation without a key is a mistake.
	Required bool

	ReuseAsNew, RefuseAbandoned  bool
	MutationTTL, QueryTTL, Lease time.Duration

	// MaxAnswer is how many bytes of an answer are stored at most, as the codec leaves it.
	MaxAnswer int
	Codec     idempotency.Codec
	// Answers keeps the answers elsewhere than in the records. Nil keeps them there.
	Answers idempotency.AnswerStore

	Logger *slog.Logger
}

// Keeper keeps the keys of a server. It is safe for concurrent use.
type Keeper struct {
	cfg Config
	// running counts the operations that run under a claim.
	running pending.Counter
}

// New returns a keeper.
func New(cfg Config) *Keeper { return &Keeper{cfg: cfg} }

// Wait returns when no operation runs under a claim, so that all are settled, or with an error that matches that of ctx
// when that ends before.
func (k *Keeper) Wait(ctx context.Context) error {
	if err := k.running.Wait(ctx); err != nil {
		return fmt.Errorf("ratelimit: operations still ran under an idempotency key: %w", err)
	}
	return nil
}

// Release is the settlement that gives a claim back which a take may have written although its reply was lost. What was
// charged with it stays charged, because the receipt was lost as well.
func Release(tenant string, claim *idempotency.Claim) bucket.Settlement {
	return bucket.Settlement{Claim: &bucket.ClaimSettlement{Tenant: tenant, Claim: claim, Outcome: idempotency.Released}}
}

// pauses are those between the tries to settle a claim or to store an answer. They are worth a wait: a claim that
// stays in flight lets a later attempt run the operation again, or leaves its outcome unknown.
var pauses = [...]time.Duration{0, 20 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond}

// patiently tries until it succeeds or there are no more pauses, and returns the last error.
func patiently(try func() error) (err error) {
	for _, pause := range pauses {
		time.Sleep(pause) //nolint:forbidigo // a pause between tries, short and bounded
		if err = try(); err == nil {
			return nil
		}
	}
	return err
}
