package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Names of headers, as Standard Webhooks has them.
const (
	// HeaderID has the id of the message, the same at each attempt.
	HeaderID = "Webhook-Id"
	// HeaderTimestamp has the time of the attempt, in seconds since 1970.
	HeaderTimestamp = "Webhook-Timestamp"
	// HeaderSignature has signatures with a space between them, one for each secret that is in use.
	HeaderSignature = "Webhook-Signature"
)

// version is that of signatures with HMAC-SHA256.
const version = "v1,"

// Sign sets the headers of an attempt, signed with each of the secrets: two while one takes the place of another. The error is that of an id which is
// none (1 to 128 characters of A-Z a-z 0-9 _ -), or of secrets of which none is given, more than two, or one is zero.
func Sign(header http.Header, id string, at time.Time, body []byte, secrets ...Secret) error {
	const most = 2
	if !validID(id) {
		return fmt.Errorf("webhook: the id %.40q: write 1 to %d characters of A-Z a-z 0-9 _ -", id, maxID)
	}
	if len(secrets) == 0 || len(secrets) > most {
		return fmt.Errorf("webhook: %d secrets: give 1 or %d", len(secrets), most)
	}
	timestamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, 0, len(secrets))
	for _, s := range secrets {
		if s.IsZero() {
			return errors.New("webhook: a secret is zero: make it with NewSecret or ParseSecret")
		}
		signatures = append(signatures, version+base64.StdEncoding.EncodeToString(s.mac(id, timestamp, body)))
	}
	header.Set(HeaderID, id)
	header.Set(HeaderTimestamp, timestamp)
	header.Set(HeaderSignature, strings.Join(signatures, " "))
	return nil
}

const maxID = 128

// validID says whether an id is one. It has no dot, which would let a signature be that of two messages: dots stand between id, time and body.
func validID(id string) bool {
	for _, c := range []byte(id) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '_' && c != '-' {
			return false
		}
	}
	return id != "" && len(id) <= maxID
}

var (
	// ErrSignature says that a message is not from whom has the secret: a header is missing or malformed, or no signature is right.
	ErrSignature = errors.New("webhook: the message is not signed with the secret")
	// ErrTime says that a message was signed too long ago, or too far ahead: it may be a replay, or a clock is wrong.
	ErrTime = errors.New("webhook: the message was not signed of late")
	// ErrBody says that the body could not be read, or is larger than any webhook.
	ErrBody = errors.New("webhook: the body cannot be read, or is too large")
)

// DefaultTolerance is by how much the time of a message may differ from the clock of its receiver.
const DefaultTolerance = 5 * time.Minute

// A Verifier tells messages from forged ones. It is a value: its zero value verifies nothing, because it has no secret. It is safe for concurrent use.
type Verifier struct {
	// Secrets are those that are right, such as the old and the new one while the secret is changed.
	Secrets []Secret
	// Tolerance is by how much the time of a message may differ from the clock. Zero or less means [DefaultTolerance].
	Tolerance time.Duration
}

// Read returns the body of a request that was signed with one of the secrets of late, and its id: who has seen the id has seen the message. It
// reads 64 KiB at most. The error is [ErrSignature], [ErrTime] or [ErrBody].
func (v Verifier) Read(r *http.Request) (id string, body []byte, err error) {
	const most = 64 << 10
	body, err = io.ReadAll(io.LimitReader(r.Body, most+1))
	if err != nil || len(body) > most {
		return "", nil, ErrBody
	}
	if err := v.Verify(r.Header, body, time.Now()); err != nil {
		return "", nil, err
	}
	return r.Header.Get(HeaderID), body, nil
}

// Verify says whether body, exactly as it came, and the headers were signed with one of the secrets, at a time near now. The error is [ErrSignature]
// or [ErrTime]. How long it takes does not depend on how much of a signature is right.
func (v Verifier) Verify(header http.Header, body []byte, now time.Time) error {
	id, timestamp, signatures := header.Values(HeaderID), header.Values(HeaderTimestamp), header.Values(HeaderSignature)
	if len(id) != 1 || len(timestamp) != 1 || len(signatures) != 1 || !validID(id[0]) {
		return ErrSignature
	}
	seconds, err := strconv.ParseInt(timestamp[0], 10, 64)
	if err != nil || strconv.FormatInt(seconds, 10) != timestamp[0] {
		return ErrSignature
	}
	if !v.signed(signatures[0], id[0], timestamp[0], body) {
		return ErrSignature
	}
	tolerance := v.Tolerance
	if tolerance <= 0 {
		tolerance = DefaultTolerance
	}
	if at := time.Unix(seconds, 0); at.Before(now.Add(-tolerance)) || at.After(now.Add(tolerance)) {
		return ErrTime
	}
	return nil
}

// signed says whether one of the first signatures is that of a secret. Versions that it does not know are those of others.
func (v Verifier) signed(list, id, timestamp string, body []byte) bool {
	const most = 16
	var macs [][]byte
	for signature := range strings.SplitSeq(list, " ") {
		if len(macs) == most {
			break
		}
		if mac := decoded(signature); mac != nil {
			macs = append(macs, mac)
		}
	}
	for _, s := range v.Secrets {
		if s.IsZero() {
			continue
		}
		want := s.mac(id, timestamp, body)
		if slices.ContainsFunc(macs, func(mac []byte) bool { return hmac.Equal(mac, want) }) {
			return true
		}
	}
	return false
}

// decoded returns a signature with HMAC-SHA256, nil if it is none.
func decoded(signature string) []byte {
	encoded, known := strings.CutPrefix(signature, version)
	given, err := base64.StdEncoding.DecodeString(encoded)
	if !known || err != nil || len(given) != sha256.Size {
		return nil
	}
	return given
}
