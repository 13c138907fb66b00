package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

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
	signatures := make([]string, 0, len(secrets))
	for _, s := range secrets {
		if s.IsZero() {
			return errors.New("webhook: a secret is zero: make it with NewSecret or ParseSecret")
		}
		signer, err := standardwebhooks.NewWebhookRaw([]byte(s.key))
		if err != nil {
			return fmt.Errorf("webhook: %w", err)
		}
		signature, err := signer.Sign(id, at, body)
		if err != nil {
			return fmt.Errorf("webhook: %w", err)
		}
		signatures = append(signatures, signature)
	}
	header.Set(standardwebhooks.HeaderWebhookID, id)
	header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	header.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
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
