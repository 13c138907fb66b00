package ratelimit

import "github.com/gqlgen-ratelimit/ratelimit/cost"

// AnswerConfig bounds what leaves the server. A price bounds objects and calls of resolvers, and not how long their texts
// are. The zero value is the default in each field.
type AnswerConfig struct {
	// MaxBytes is how many bytes the answer of one operation may have: its data as JSON with the messages of its errors,
	// before it is compressed, in all of its parts together; each event of a subscription is an answer of its own. Bytes are
	// counted while fields complete and again while the answer is written, so that what goes beyond is not built: no further
	// resolver is called but those of root fields of a mutation, and the client gets an error of code
	// [ratelimitclient.CodeQueryLimitExceeded] in the place of all data. Nothing is given back of what was charged. It holds
	// for everybody, in each mode, exempt or not. Zero means 8 MiB, [None] no bound.
	MaxBytes int64
}

const defaultMaxAnswer = 8 << 20

// RuleResponseBytes is the rule that an answer beyond [AnswerConfig.MaxBytes] breaks, in the Shape of a [RefusedError].
const RuleResponseBytes cost.Rule = "responseBytes"

func (c *AnswerConfig) validate(fail failFunc) {
	countOrNone(fail, "Answer.MaxBytes", c.MaxBytes)
}
