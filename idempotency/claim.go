package idempotency

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"time"
)

// Defaults of a [Claim], used where its field is zero.
const (
	// DefaultLease is how long a claim stays in flight without being renewed.
	DefaultLease = 30 * time.Second
	// DefaultMutationTTL is how long the record of a mutation lives, counted from its charge.
	DefaultMutationTTL = 24 * time.Hour
	// DefaultQueryTTL is how long the record of a query lives, counted from its charge.
	DefaultQueryTTL = 10 * time.Minute
	// DefaultMaxAnswer is the size in bytes of the largest answer that is stored.
	DefaultMaxAnswer = 16 << 10
	// DefaultMaxAnswers is how many bytes of answers are stored of a tenant within the life of their records.
	DefaultMaxAnswers = 32 << 20
	// MaxReplays is how many stored answers one server gives a tenant within a minute where no limit of its policy counts
	// replays. A limit holds over all servers, and takes a call of the store for each. Beyond it replays are refused as
	// rate limited. A tenant of whom no limit is enforced has no bound.
	MaxReplays = 600
)

// AttemptID tells one try of an operation from another try under the same key. Only the attempt
// that holds a claim may renew or settle it.
type AttemptID [16]byte

// NewAttemptID returns a random attempt id from the system's secure source.
func NewAttemptID() AttemptID {
	var id AttemptID
	// crypto/rand.Read never returns an error since Go 1.24; it ends the program instead.
	_, _ = rand.Read(id[:])
	return id
}

// Claim asks a store to mark a key as in use by one attempt.
//
// The store writes it in the same step that charges, and only if the charge is admitted.
type Claim struct {
	// Subject names whom the key belongs to. Keys of different subjects never meet, not even within
	// one tenant.
	Subject string
	// Key is the client's key.
	Key Key
	// Fingerprint is what the client asked for under the key.
	Fingerprint Fingerprint
	// Attempt is this try.
	Attempt AttemptID
	// Lease is how long the claim stays in flight unless it is renewed. Zero means [DefaultLease].
	Lease time.Duration
	// TTL is how long the record lives from its charge on. Neither a replay nor a renewal extends it.
	// Zero means [DefaultMutationTTL].
	TTL time.Duration
	// RunAgain runs an operation that is done but of which no answer is stored again, charged and recorded
	// like the first time, which is right for queries. By default such a repeat is refused.
	RunAgain bool
	// RefuseAbandoned refuses an attempt after one that was abandoned: its lease has run out and nobody
	// knows how far it came. By default the next attempt runs, uncharged.
	RefuseAbandoned bool
	// ReuseAsNew gives every fingerprint a record of its own, so that one key may be sent with several
	// operations, of which each is charged and claimed by itself. By default the second operation under a
	// key is refused. Records of the two settings do not meet.
	ReuseAsNew bool
}

// RecordName returns the name of the record of the claim: a fixed-size digest of subject and key,
// so that no client chooses the length or the bytes of a stored key.
func (c *Claim) RecordName() string {
	h := sha256.New()
	// A length prefix keeps ("ab", "c") and ("a", "bc") apart.
	var n [8]byte
	for i, l := 0, uint64(len(c.Subject)); i < len(n); i, l = i+1, l>>8 {
		n[i] = byte(l)
	}
	h.Write(n[:])
	h.Write([]byte(c.Subject))
	h.Write([]byte(c.Key))
	if c.ReuseAsNew {
		// No key has this byte, so that no record of the other setting has the name.
		h.Write([]byte{0})
		h.Write(c.Fingerprint[:])
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}

// Outcome is how an attempt ended.
type Outcome uint8

const (
	// Done says that the operation ran. Its answer, if one is given, is stored for replays.
	Done Outcome = iota + 1
	// Released says that nothing ran: the record is removed and the key is free again. A repeat, which
	// an earlier attempt was charged for, leaves that charge on record: only its lease ends, and the
	// next attempt is an uncharged repeat again.
	Released
)
