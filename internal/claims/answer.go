package claims

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
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

// answer returns what the record keeps for replays, nil if the answer is not stored: one that comes in several parts, that
// of a query with errors, which may be gone when it is asked again, and where there is no room for it.
func (h *Held) answer(ctx context.Context, response *graphql.Response) []byte {
	inParts := response != nil && response.HasNext != nil && *response.HasNext
	if response == nil || inParts || !h.Mutation && len(response.Errors) > 0 {
		return nil
	}
	cfg, name := &h.keeper.cfg, h.Claim.RecordName()
	largest := cfg.MaxAnswer
	if cfg.Codec != nil {
		largest *= MaxCodecRatio
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
	if kept, err = h.keeper.encode(name, kept); err != nil {
		h.unkept(ctx, "Idempotency.Codec", err)
		return nil
	}
	if len(kept) > cfg.MaxAnswer || !h.Operation.KeepAnswer(ctx, int64(len(kept))) {
		return nil
	}
	if cfg.Answers == nil {
		return kept
	}
	digest := sha256.Sum256(kept)
	put := func() error {
		return guard.Call("Idempotency.Answers", func() error {
			return cfg.Answers.Put(ctx, answerName(name, digest[:]), kept, h.Claim.TTL)
		})
	}
	if h.Mutation {
		err = patiently(put)
	} else {
		// A query runs again, so that its client does not wait for the tries.
		err = put()
	}
	if err != nil {
		h.unkept(ctx, "Idempotency.Answers", err)
		return nil
	}
	return append([]byte{referredAnswer}, digest[:]...)
}

func (h *Held) unkept(ctx context.Context, what string, err error) {
	h.keeper.cfg.Logger.ErrorContext(ctx, "ratelimit: "+what+" failed: an answer is not stored, so that repeats of its "+
		"operation are refused, or run again if it is a query", slog.String("error", err.Error()))
}

// answerName is the name of an answer in Idempotency.Answers. It holds the digest, so that an attempt
// that has lost its claim does not replace the answer of another.
func answerName(record string, digest []byte) string {
	return record + "." + base64.RawURLEncoding.EncodeToString(digest[:16])
}

// encode gives the answer to the codec, if there is one.
func (k *Keeper) encode(name string, answer []byte) (kept []byte, err error) {
	if k.cfg.Codec == nil {
		return answer, nil
	}
	err = guard.Call("Idempotency.Codec", func() error {
		encoded, err := k.cfg.Codec.Encode(name, answer)
		kept = append([]byte{encodedAnswer}, encoded...)
		return err
	})
	return kept, err
}

// ErrUnreadable says that a stored answer is not what this server can read, and never will be.
var ErrUnreadable = errors.New("ratelimit: a stored answer cannot be read")

// Answer returns the answer that the record of that name keeps. The error matches [ErrUnreadable] if nobody will know it
// any more, and otherwise Idempotency.Answers cannot tell now.
func (k *Keeper) Answer(ctx context.Context, name string, kept []byte) (*graphql.Response, error) {
	if len(kept) == 1+sha256.Size && kept[0] == referredAnswer {
		var err error
		if kept, err = k.referred(ctx, name, kept[1:]); err != nil {
			return nil, err
		}
	}
	if len(kept) > 0 && kept[0] == encodedAnswer {
		var err error
		if kept, err = k.decode(name, kept[1:]); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
		}
	}
	var answer storedAnswer
	if len(kept) == 0 || kept[0] != plainAnswer {
		return nil, ErrUnreadable
	}
	if err := json.Unmarshal(kept, &answer); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	response := &graphql.Response{Data: answer.Data}
	for i := range answer.Errors {
		response.Errors = append(response.Errors, answer.Errors[i].graphQL())
	}
	return response, nil
}

// referred returns what Idempotency.Answers keeps, if it is what was put there.
func (k *Keeper) referred(ctx context.Context, name string, digest []byte) (kept []byte, err error) {
	if k.cfg.Answers == nil {
		return nil, fmt.Errorf("%w: it is elsewhere, and Idempotency.Answers is not set", ErrUnreadable)
	}
	err = guard.Call("Idempotency.Answers", func() (err error) {
		kept, err = k.cfg.Answers.Get(ctx, answerName(name, digest))
		return err
	})
	switch sum := sha256.Sum256(kept); {
	case errors.Is(err, idempotency.ErrNoAnswer):
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	case err != nil:
		return nil, err
	case !bytes.Equal(sum[:], digest):
		return nil, fmt.Errorf("%w: it is not what was put into Idempotency.Answers", ErrUnreadable)
	}
	return kept, nil
}

func (k *Keeper) decode(name string, kept []byte) (answer []byte, err error) {
	if k.cfg.Codec == nil {
		return nil, errors.New("it is encoded, and Idempotency.Codec is not set")
	}
	err = guard.Call("Idempotency.Codec", func() (err error) {
		answer, err = k.cfg.Codec.Decode(name, kept)
		return err
	})
	return answer, err
}
