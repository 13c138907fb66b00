package idempotency

import (
	"context"
	"errors"
	"time"
)

// Codec changes the form in which answers are kept, for example by compression or encryption. It is safe
// for concurrent use.
//
// name is that of the record that the answer belongs to, the same for both methods. A codec that encrypts
// should authenticate it as well: then nobody who can write to the store can pass the answer of one record
// off as that of another.
type Codec interface {
	// Encode returns the form to keep. It must not change the answer. An error keeps no answer: the client
	// of the first attempt gets its own all the same.
	Encode(name string, answer []byte) ([]byte, error)
	// Decode returns the answer. Whoever can write to the store chooses what it is given: it bounds what
	// it makes of it. An error refuses the replay, because nobody knows the answer any more.
	Decode(name string, kept []byte) ([]byte, error)
}

// ErrNoAnswer says that an [AnswerStore] has no answer of the name.
var ErrNoAnswer = errors.New("idempotency: no such answer")

// AnswerStore keeps answers in another place than the records of their keys. It is safe for concurrent
// use, and each call has a deadline of its own.
//
// A name has up to 64 characters of A–Z a–z 0–9 - _ and the full stop, and stands for one content: what
// is put under it again is the same.
type AnswerStore interface {
	// Put keeps the answer for the time to live, and may forget it later. It returns when the answer is
	// there to be got by every replica. It must not keep the slice.
	Put(ctx context.Context, name string, answer []byte, ttl time.Duration) error
	// Get returns the answer. The error matches [ErrNoAnswer] if there is none, and any other means that
	// the store cannot tell now.
	Get(ctx context.Context, name string) ([]byte, error)
}
