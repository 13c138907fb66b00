package ratelimit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/decision"
)

// The forms of a stored answer, told apart by the first byte.
const (
	// plainAnswer begins the JSON of a storedAnswer.
	plainAnswer = '{'
	// encodedAnswer stands before what Idempotency.Codec has made of that.
	encodedAnswer = 1
	// referredAnswer stands before the SHA-256 of what Idempotency.Answers keeps, in either form.
	referredAnswer = 2
)

// maxCodecRatio is how many times larger than a stored answer one may be that is given to the codec.
const maxCodecRatio = 64

// storedAnswer is what is kept of an answer: data and errors, as the client got them. The extensions
// are made anew for each replay.
type storedAnswer struct {
	Errors []storedError   `json:"errors,omitempty"`
	Data   json.RawMessage `json:"data"`
}

// storedError is a gqlerror.Error of which every byte that the client sees comes back: decoding would
// round large numbers and sort the fields of structs.
type storedError struct {
	Message    storedText                 `json:"message"`
	Path       ast.Path                   `json:"path,omitempty"`
	Locations  []gqlerror.Location        `json:"locations,omitempty"`
	Extensions map[string]json.RawMessage `json:"extensions,omitempty"`
}

// storedText is a text that encodes to the same bytes again. An encoder writes bytes that are not UTF-8 as
// the escape of U+FFFD, and the character U+FFFD itself as it is: the escape stands for such a byte.
type storedText string

// UnmarshalJSON implements json.Unmarshaler.
func (s *storedText) UnmarshalJSON(raw []byte) error {
	const escape = `\ufffd`
	raw = bytes.TrimSuffix(bytes.TrimPrefix(raw, []byte{'"'}), []byte{'"'})
	var text strings.Builder
	from := 0
	add := func(to int) error {
		var part string
		err := json.Unmarshal([]byte(`"`+string(raw[from:to])+`"`), &part)
		text.WriteString(part)
		return err
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if !bytes.HasPrefix(raw[i:], []byte(escape)) {
			// Whatever is escaped is no beginning of another escape.
			i++
			continue
		}
		if err := add(i); err != nil {
			return err
		}
		text.WriteByte(0xff)
		from = i + len(escape)
		i = from - 1
	}
	err := add(len(raw))
	*s = storedText(text.String())
	return err
}

func (s *storedError) graphQL() *gqlerror.Error {
	restored := &gqlerror.Error{Message: string(s.Message), Path: s.Path, Locations: s.Locations}
	if len(s.Extensions) > 0 {
		restored.Extensions = make(map[string]any, len(s.Extensions))
	}
	for name, raw := range s.Extensions {
		var value any = raw
		var text storedText
		// Whoever looks at an error on its way, as gqlgen does at its code, expects a string to be one.
		if bytes.HasPrefix(raw, []byte{'"'}) && json.Unmarshal(raw, &text) == nil {
			value = string(text)
		}
		restored.Extensions[name] = value
	}
	return restored
}

// answerToStore returns what the record keeps for replays, nil if the answer is not stored: for
// queries, for answers that come in several parts, and where there is no room for it.
func (e *Extension) answerToStore(ctx context.Context, op *operation, response *graphql.Response) []byte {
	inParts := response != nil && response.HasNext != nil && *response.HasNext
	if !op.mutation() || response == nil || inParts {
		return nil
	}
	cfg, name := &e.cfg.Idempotency, op.claim.RecordName()
	largest := cfg.MaxAnswer
	if cfg.Codec != nil {
		largest *= maxCodecRatio
	}
	// An answer that is far too large is not copied to find that out.
	if len(response.Data) > largest {
		return nil
	}
	kept, err := json.Marshal(struct {
		Errors gqlerror.List   `json:"errors,omitempty"`
		Data   json.RawMessage `json:"data"`
	}{response.Errors, response.Data})
	if err != nil || len(kept) > largest {
		return nil
	}
	if kept, err = e.encodeAnswer(name, kept); err != nil {
		e.cfg.Logger.ErrorContext(ctx, "ratelimit: Idempotency.Codec failed: an answer is not stored, and repeats of its "+
			"operation are refused", slog.String("error", err.Error()))
		return nil
	}
	if len(kept) > cfg.MaxAnswer || !op.takeAnswerBytes(ctx, int64(len(kept))) {
		return nil
	}
	if cfg.Answers == nil {
		return kept
	}
	digest := sha256.Sum256(kept)
	err = patiently(func() error { return e.putAnswer(ctx, answerName(name, digest[:]), kept) })
	if err != nil {
		e.cfg.Logger.ErrorContext(ctx, "ratelimit: Idempotency.Answers failed: an answer is not stored, and repeats of its "+
			"operation are refused", slog.String("error", err.Error()))
		return nil
	}
	return append([]byte{referredAnswer}, digest[:]...)
}

// answerName is the name of an answer in Idempotency.Answers. It holds the digest, so that an attempt
// that has lost its claim does not replace the answer of another.
func answerName(record string, digest []byte) string {
	return record + "." + base64.RawURLEncoding.EncodeToString(digest[:16])
}

// encodeAnswer gives the answer to the codec, if there is one.
func (e *Extension) encodeAnswer(name string, answer []byte) (kept []byte, err error) {
	codec := e.cfg.Idempotency.Codec
	if codec == nil {
		return answer, nil
	}
	defer recoverUser(&err)
	encoded, err := codec.Encode(name, answer)
	if err != nil {
		return nil, err
	}
	return append([]byte{encodedAnswer}, encoded...), nil
}

// errAnswerUnreadable says that a stored answer is not what this server can read.
var errAnswerUnreadable = errors.New("ratelimit: a stored answer cannot be read")

// answerOf returns the answer that a record keeps. The error matches errAnswerUnreadable if nobody will
// know it any more, and otherwise Idempotency.Answers cannot tell now.
func (e *Extension) answerOf(ctx context.Context, name string, kept []byte) (*graphql.Response, error) {
	if len(kept) == 1+sha256.Size && kept[0] == referredAnswer {
		var err error
		if kept, err = e.referredAnswer(ctx, name, kept[1:]); err != nil {
			return nil, err
		}
	}
	if len(kept) > 0 && kept[0] == encodedAnswer {
		var err error
		if kept, err = e.decodeAnswer(name, kept[1:]); err != nil {
			return nil, fmt.Errorf("%w: %w", errAnswerUnreadable, err)
		}
	}
	var answer storedAnswer
	if len(kept) == 0 || kept[0] != plainAnswer {
		return nil, errAnswerUnreadable
	}
	if err := json.Unmarshal(kept, &answer); err != nil {
		return nil, fmt.Errorf("%w: %w", errAnswerUnreadable, err)
	}
	response := &graphql.Response{Data: answer.Data}
	for i := range answer.Errors {
		response.Errors = append(response.Errors, answer.Errors[i].graphQL())
	}
	return response, nil
}

// referredAnswer returns what Idempotency.Answers keeps, if it is what was put there.
func (e *Extension) referredAnswer(ctx context.Context, name string, digest []byte) ([]byte, error) {
	if e.cfg.Idempotency.Answers == nil {
		return nil, fmt.Errorf("%w: it is elsewhere, and Idempotency.Answers is not set", errAnswerUnreadable)
	}
	kept, err := e.getAnswer(ctx, answerName(name, digest))
	switch sum := sha256.Sum256(kept); {
	case errors.Is(err, idempotency.ErrNoAnswer):
		return nil, fmt.Errorf("%w: %w", errAnswerUnreadable, err)
	case err != nil:
		return nil, err
	case !bytes.Equal(sum[:], digest):
		return nil, fmt.Errorf("%w: it is not what was put into Idempotency.Answers", errAnswerUnreadable)
	}
	return kept, nil
}

func (e *Extension) putAnswer(ctx context.Context, name string, kept []byte) (err error) {
	defer recoverUser(&err)
	return e.cfg.Idempotency.Answers.Put(ctx, name, kept, e.cfg.Idempotency.MutationTTL)
}

func (e *Extension) getAnswer(ctx context.Context, name string) (kept []byte, err error) {
	defer recoverUser(&err)
	return e.cfg.Idempotency.Answers.Get(ctx, name)
}

func (e *Extension) decodeAnswer(name string, kept []byte) (answer []byte, err error) {
	codec := e.cfg.Idempotency.Codec
	if codec == nil {
		return nil, errors.New("it is encoded, and Idempotency.Codec is not set")
	}
	defer recoverUser(&err)
	return codec.Decode(name, kept)
}

// recoverUser turns a panic of the user's codec or store of answers into an error: on its way out it would
// leave the claim unsettled, or end a whole WebSocket.
func recoverUser(err *error) {
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("panic: %v", cause)
	}
}

// replay returns the stored answer. It returns nil if the replay is refused, which the decision says.
func (e *Extension) replay(ctx context.Context, op *operation, kept []byte) *graphql.Response {
	d, name := &op.decision, op.claim.RecordName()
	op.claim = nil
	if refusal := e.capReplays(ctx, op); refusal != nil {
		d.Refuse(refusal)
		return nil
	}
	answer, err := e.answerOf(context.WithoutCancel(ctx), name, kept)
	switch {
	case errors.Is(err, errAnswerUnreadable):
		d.Refuse(refusedByClaim(&bucket.Result{Verdict: bucket.AnswerUnavailable}))
		e.cfg.Logger.ErrorContext(ctx, "ratelimit: a replay is refused",
			slog.String("error", err.Error()), slog.String("refusalId", d.Refusal.ID))
		return nil
	case err != nil:
		d.Refuse(refusedUnavailable())
		e.cfg.Logger.WarnContext(ctx, "ratelimit: Idempotency.Answers failed: a replay is put off",
			slog.String("error", err.Error()), slog.String("refusalId", d.Refusal.ID))
		return nil
	}
	d.Outcome = decision.Replayed
	return answer
}

// capReplays returns why a tenant gets no stored answer for now, nil if it gets one: the limits of its policy
// say so, or where none counts replays this server.
func (e *Extension) capReplays(ctx context.Context, op *operation) *decision.Refusal {
	if buckets := judged(&op.rules); counts(buckets, bucket.Replays) {
		return op.chargeFrom(ctx, buckets, bucket.Replays, 1).Refusal
	}
	most := e.cfg.Idempotency.MaxReplays
	if most < 0 || !enforces(&op.rules) {
		return nil
	}
	n, left := e.replays.Count(op.decision.Subject.Tenant, time.Now(), time.Minute)
	if n <= most {
		return nil
	}
	return refusedReplay(left)
}

// takeAnswerBytes charges the room that an answer takes, and reports whether it may take it. Most policies
// have no limit of it, and then the store is not asked.
func (op *operation) takeAnswerBytes(ctx context.Context, n int64) bool {
	buckets := judged(&op.rules)
	if !counts(buckets, bucket.AnswerBytes) {
		return true
	}
	after := op.chargeFrom(ctx, buckets, bucket.AnswerBytes, n)
	if after.Refusal != nil {
		// The limit is used up, and its client was refused nothing.
		after.Outcome = decision.Admitted
	}
	op.extension.reporter.Stored(ctx, &after)
	return after.Refusal == nil
}

// counts says whether a limit counts the unit.
func counts(buckets []bucket.Bucket, unit bucket.Unit) bool {
	for i := range buckets {
		for _, limit := range buckets[i].Limits.All() {
			if limit.Unit == unit {
				return true
			}
		}
	}
	return false
}
