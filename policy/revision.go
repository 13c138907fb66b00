package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Bounds of a revision.
const (
	// MaxNumber is the largest number of a revision: scripts of Redis and JavaScript count exactly up to there.
	MaxNumber = 1<<53 - 1
	// MaxText is how many bytes an author has, and a reason.
	MaxText = 512
)

// Hash is the SHA-256 of the bytes of a document. The zero value is that of none.
type Hash [sha256.Size]byte

// HashOf returns the hash of a document.
func HashOf(document []byte) Hash { return sha256.Sum256(document) }

// hashPrefix is what the text of a hash begins with.
const hashPrefix = "sha256:"

// String returns sha256: and the hash in lower case hexadecimal. It is empty for the zero value.
func (h Hash) String() string {
	if h == (Hash{}) {
		return ""
	}
	return hashPrefix + hex.EncodeToString(h[:])
}

// MarshalText returns the text of [Hash.String].
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what [Hash.MarshalText] returns. The error repeats nothing of another text.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*h = Hash{}
		return nil
	}
	if len(text) != len(hashPrefix)+hex.EncodedLen(sha256.Size) || string(text[:len(hashPrefix)]) != hashPrefix {
		return fmt.Errorf("policy: a hash of %d bytes: want %s and %d hexadecimal digits", len(text), hashPrefix, hex.EncodedLen(sha256.Size))
	}
	_, err := hex.Decode(h[:], text[len(hashPrefix):])
	if err != nil {
		*h = Hash{}
		return fmt.Errorf("policy: a hash: %w", err)
	}
	return nil
}

// Head is the number of a revision and the hash of its document: what a follower says that it has. The zero value is
// that of no revision.
type Head struct {
	Number uint64
	Hash   Hash
}

// String returns the number and the first digits of the hash.
func (h Head) String() string {
	return fmt.Sprintf("%d (%x)", h.Number, h.Hash[:6])
}

// Revision is a policy document under a number. It is not changed once somebody else has it.
type Revision struct {
	// Number counts the revisions of a feed, from 1 to [MaxNumber]. It only grows: to go back to an older document is
	// another revision.
	Number uint64
	// Document is the policy document, YAML or JSON, byte for byte as its author has written it: at most
	// [tiers.MaxDocument] bytes.
	Document []byte
	// Hash is the hash of the document.
	Hash Hash
	// Author is who has published it, and Reason why, at most [MaxText] bytes of UTF-8 each. Both may be empty. Instances and
	// logs show them: they hold no secrets.
	Author, Reason string
	// Published is when, to the millisecond. It decides nothing: clocks differ. Zero means that nobody knows.
	Published time.Time
	// Signature is an Ed25519 signature of all the fields above, which [Revision.Sign] makes. Empty means none.
	Signature []byte
}

// Head returns the number and the hash.
func (r *Revision) Head() Head { return Head{r.Number, r.Hash} }

// Check returns why a revision is none, whatever its document says: its number, its size, its hash, its texts. It is a
// [*RefusedError].
func (r *Revision) Check() error {
	if r.Number < 1 || r.Number > MaxNumber {
		return r.refuse(ReasonMalformed, fmt.Errorf("the number is %d, want 1 to %d", r.Number, uint64(MaxNumber)))
	}
	if len(r.Document) > tiers.MaxDocument {
		return r.refuse(ReasonMalformed, fmt.Errorf("the document is larger than the %d bytes that fit", tiers.MaxDocument))
	}
	for _, text := range [...]struct{ name, value string }{{"author", r.Author}, {"reason", r.Reason}} {
		if len(text.value) > MaxText || !utf8.ValidString(text.value) {
			return r.refuse(ReasonMalformed, fmt.Errorf("the %s has %d bytes, want at most %d of UTF-8", text.name, len(text.value), MaxText))
		}
	}
	if year := r.Published.UTC().Year(); !r.Published.IsZero() && (year < 1970 || year > 9999) {
		return r.refuse(ReasonMalformed, fmt.Errorf("it was published in the year %d", year))
	}
	if hash := HashOf(r.Document); hash != r.Hash {
		return r.refuse(ReasonHash, fmt.Errorf("the document has the hash %s, and not the one of the revision: it was cut or changed on the way", hash))
	}
	return nil
}

// Load is [Revision.LoadWith] with the default configuration.
func (r *Revision) Load() (*tiers.Snapshot, error) { return r.LoadWith(tiers.ParseConfig{}) }

// LoadWith checks the revision and compiles its document, if that is no larger than the configuration says. The snapshot has
// the number of the revision as its generation. The error is a [*RefusedError], which unwraps to the *tiers.PolicyError of
// a document with mistakes.
func (r *Revision) LoadWith(cfg tiers.ParseConfig) (*tiers.Snapshot, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	snapshot, err := cfg.Load(r.Document, r.Number)
	if err != nil {
		return nil, r.refuse(ReasonDocument, err)
	}
	return snapshot, nil
}

// published returns the time as it is stored and signed: milliseconds since 1970, 0 for none.
func (r *Revision) published() int64 {
	if r.Published.IsZero() {
		return 0
	}
	return r.Published.UnixMilli()
}

// publishedAt is the time that published has returned.
func publishedAt(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
