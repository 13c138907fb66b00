package bucket

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/internal/deadline"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// redisAnswers keeps answers in Redis.
type redisAnswers struct {
	pipeline  *pipeline
	namespace string
	bounds    deadline.Bounds
}

var _ idempotency.AnswerStore = (*redisAnswers)(nil)

// NewRedisAnswers returns a place for the answers of idempotent operations in a Redis of their own choice, for example one
// that may evict, so that they do not fill the memory of the budgets. It is safe for concurrent use.
// In a Redis Cluster answers are spread over all slots. It does not connect. The error says what is wrong with the
// configuration.
func NewRedisAnswers(cfg RedisConfig) (idempotency.AnswerStore, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	return &redisAnswers{
		pipeline: newPipeline(cfg.Client, cfg.Timeout, false), namespace: cfg.Namespace, bounds: cfg.bounds(),
	}, nil
}

// Put implements [idempotency.AnswerStore]. Its errors match those of a [Store].
func (r *redisAnswers) Put(ctx context.Context, name string, answer []byte, ttl time.Duration) error {
	if err := checkAnswer(name, ttl); err != nil {
		return err
	}
	_, err := r.do(ctx, "set", r.key(name), answer, "px", max(1, ttl.Milliseconds()))
	return err
}

// Get implements [idempotency.AnswerStore]. Its errors other than [idempotency.ErrNoAnswer] match those of
// a [Store].
func (r *redisAnswers) Get(ctx context.Context, name string) ([]byte, error) {
	if err := checkAnswer(name, 0); err != nil {
		return nil, err
	}
	text, err := r.do(ctx, "get", r.key(name))
	return []byte(text), err
}

func (r *redisAnswers) key(name string) string {
	return "rl:" + r.namespace + answerInfix + name
}

// answerKey is the place of the key among the arguments.
const answerKey = 1

func (r *redisAnswers) do(ctx context.Context, verb, key string, args ...any) (string, error) {
	if err := checkContext(ctx); err != nil {
		return "", err
	}
	call := deadline.Begin(ctx, r.bounds)
	defer call.End()
	w := newWaiter(call, append([]any{verb, key}, args...), answerKey) //nolint:contextcheck // the call of a deadline is the context of its command
	err := r.pipeline.process(w, key)                                  //nolint:contextcheck // the call of a deadline is the context of its command
	switch {
	case errors.Is(err, redis.Nil):
		return "", idempotency.ErrNoAnswer
	case err != nil:
		return "", classify(err)
	}
	return w.cmd.Text()
}

// checkAnswer returns what is wrong with a call, wrapped in [ErrInvalid].
func checkAnswer(name string, ttl time.Duration) error {
	if !literal(name) {
		return fmt.Errorf("%w: an answer named %.80q: 1 to %d characters of A-Z a-z 0-9 _ . - fit", ErrInvalid, name, maxLiteralBytes)
	}
	if ttl < 0 || ttl > maxTTL {
		return fmt.Errorf("%w: an answer that lives %v", ErrInvalid, ttl)
	}
	return nil
}
