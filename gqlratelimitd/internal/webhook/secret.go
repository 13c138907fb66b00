package webhook

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	secretPrefix = "whsec_"
	minSecret    = 24
	maxSecret    = 64
	newSecret    = 32
)

// A Secret is what sender and receiver share: 24 to 64 bytes. Printed and logged it says nothing of them. The zero value is none.
type Secret struct{ key string }

// NewSecret returns a random secret of 32 bytes.
func NewSecret() Secret {
	key := make([]byte, newSecret)
	// It never fails: crypto/rand ends the process first.
	_, _ = rand.Read(key)
	return Secret{string(key)}
}

// ParseSecret reads a secret as [Secret.Reveal] writes it: whsec_ and base64. The error does not have the text.
func ParseSecret(text string) (Secret, error) {
	encoded, found := strings.CutPrefix(text, secretPrefix)
	if !found {
		return Secret{}, errors.New("webhook: the secret does not begin with whsec_")
	}
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return Secret{}, errors.New("webhook: the secret is no base64 after whsec_")
	}
	if len(key) < minSecret || len(key) > maxSecret {
		return Secret{}, fmt.Errorf("webhook: the secret has %d bytes: want %d to %d", len(key), minSecret, maxSecret)
	}
	return Secret{string(key)}, nil
}

// Reveal returns the secret as text, for the one to whom it is shown once, and to store it encrypted.
func (s Secret) Reveal() string {
	return secretPrefix + base64.StdEncoding.EncodeToString([]byte(s.key))
}

// IsZero says whether it is none.
func (s Secret) IsZero() bool { return s.key == "" }

// String returns the same text for all.
func (s Secret) String() string { return secretPrefix + "[hidden]" }

// Format writes the same text whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText returns what String does, so that loggers and JSON have nothing else.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
