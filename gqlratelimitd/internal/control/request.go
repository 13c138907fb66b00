package control

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// Bounds of a request.
const (
	// MaxReason is how many bytes a reason has, where nothing else is said.
	MaxReason = policy.MaxText
	// MaxKey is how many bytes an idempotency key has.
	MaxKey = 255
	// AnswerLife is for how long an answer is kept for repeats of its request.
	AnswerLife = 24 * time.Hour
	// maxTicket and maxID are how many bytes a ticket and the id of a request have.
	maxTicket = 256
	maxID     = 128
)

// Request is what comes with everything that changes something. The zero value is refused.
type Request struct {
	// Actor is who asks.
	Actor access.Actor
	// Reason is why, in 1 to [MaxReason] bytes of one line. The audit log keeps it for ever: it holds no secrets.
	Reason string
	// Ticket is where more is to be read, and ID the id of the request in logs. Both may be empty.
	Ticket, ID string
	// Key is the idempotency key: at most [MaxKey] bytes. A repeat by the same actor within [AnswerLife] is answered as the first one was,
	// and changes nothing; the same key with another request is [ErrKeyReused]. What was refused is tried again. Empty
	// means that the request is no repeat.
	Key string
}

// check returns what is wrong with the request by itself.
func (r *Request) check() error {
	for _, text := range [...]struct {
		field, value string
		least, most  int
	}{
		{"reason", r.Reason, 1, MaxReason}, {"ticket", r.Ticket, 0, maxTicket}, {"id", r.ID, 0, maxID}, {"idempotency key", r.Key, 0, MaxKey},
	} {
		if strings.TrimSpace(text.value) == "" && text.least > 0 {
			return invalid(text.field, "it is missing: say why, for who reads the audit log")
		}
		if err := checkText(text.field, text.value, text.most); err != nil {
			return err
		}
	}
	return nil
}

// checkText returns what is wrong with a text: it is printable, and not too long.
func checkText(field, text string, most int) error {
	if len(text) > most || !utf8.ValidString(text) || strings.ContainsFunc(text, unprintable) {
		return invalid(field, "it has %d bytes, want at most %d of UTF-8 without control characters", len(text), most)
	}
	return nil
}

// unprintable says which characters would show a text otherwise than it is.
func unprintable(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }

// checkName returns what is wrong with a name that is needed.
func checkName(field, name string, most int) error {
	if name == "" {
		return invalid(field, "it is missing")
	}
	return checkText(field, name, most)
}

// by is how a revision or a record calls its author, in at most so many bytes.
func (r *Request) by(most int) string {
	name := r.Actor.Subject
	if r.Actor.Issuer != "" && r.Actor.Issuer != access.LocalIssuer {
		name += " (" + r.Actor.Issuer + ")"
	}
	if len(name) > most {
		name = name[:most]
	}
	return strings.ToValidUTF8(name, "?")
}

// answerID is under what an answer is kept: nobody is answered what somebody else has asked.
func (r *Request) answerID() []byte {
	id := sha256.Sum256(fmt.Appendf(nil, "%q %q", r.Actor.Issuer+" "+r.Actor.Subject, r.Key))
	return id[:]
}

// fingerprint tells requests with one key apart. Each method has a type of input of its own.
func fingerprint(input any) ([]byte, error) {
	text, err := json.Marshal(input)
	if err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%T %s", input, text))
	return hash[:], nil
}
