package webhook

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	privatePrefix = "whsk_"
	publicPrefix  = "whpk_"
)

// A PrivateKey signs messages with Ed25519 (v1a): whoever verifies them cannot sign any. Printed and logged it says nothing of the key. The zero value is none.
type PrivateKey struct{ seed string }

// NewPrivateKey returns a random key.
func NewPrivateKey() PrivateKey {
	// It never fails: crypto/rand ends the process first.
	_, private, _ := ed25519.GenerateKey(nil)
	return PrivateKey{string(private.Seed())}
}

// ParsePrivateKey reads a key as [PrivateKey.Reveal] writes it: whsk_ and base64 of its 32 bytes, behind which its public key may stand. The error does not have the text.
func ParsePrivateKey(text string) (PrivateKey, error) {
	encoded, found := strings.CutPrefix(text, privatePrefix)
	if !found {
		return PrivateKey{}, errors.New("webhook: the private key does not begin with whsk_")
	}
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(key) != ed25519.SeedSize && len(key) != ed25519.PrivateKeySize {
		return PrivateKey{}, fmt.Errorf("webhook: the private key is no base64 of %d or %d bytes after whsk_", ed25519.SeedSize, ed25519.PrivateKeySize)
	}
	k := PrivateKey{string(key[:ed25519.SeedSize])}
	if len(key) == ed25519.PrivateKeySize && string(key[ed25519.SeedSize:]) != k.Public().key {
		return PrivateKey{}, errors.New("webhook: the private key has the public key of another one")
	}
	return k, nil
}

func (k PrivateKey) key() ed25519.PrivateKey { return ed25519.NewKeyFromSeed([]byte(k.seed)) }

// Reveal returns the key as text, to store it encrypted.
func (k PrivateKey) Reveal() string {
	return privatePrefix + base64.StdEncoding.EncodeToString(k.key())
}

// Public returns what receivers verify with. The key is not zero.
func (k PrivateKey) Public() PublicKey {
	return PublicKey{string(k.key()[ed25519.SeedSize:])}
}

// IsZero says whether it is none.
func (k PrivateKey) IsZero() bool { return k.seed == "" }

// String returns the same text for all.
func (PrivateKey) String() string { return privatePrefix + "[hidden]" }

// Format writes the same text whatever the verb.
func (k PrivateKey) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// MarshalText returns what String does, so that loggers and JSON have nothing else.
func (k PrivateKey) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

func (k PrivateKey) sign(id, timestamp string, body []byte) string {
	return versionKey + base64.StdEncoding.EncodeToString(ed25519.Sign(k.key(), content(id, timestamp, body)))
}

// A PublicKey verifies what its private key has signed. It is no secret. The zero value is none.
type PublicKey struct{ key string }

// ParsePublicKey reads a key as [PublicKey.String] writes it: whpk_ and base64 of 32 bytes.
func ParsePublicKey(text string) (PublicKey, error) {
	encoded, found := strings.CutPrefix(text, publicPrefix)
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if !found || err != nil || len(key) != ed25519.PublicKeySize {
		return PublicKey{}, fmt.Errorf("webhook: the public key %.80q: want whpk_ and base64 of %d bytes", text, ed25519.PublicKeySize)
	}
	return PublicKey{string(key)}, nil
}

// String returns the key as text.
func (k PublicKey) String() string {
	return publicPrefix + base64.StdEncoding.EncodeToString([]byte(k.key))
}

// IsZero says whether it is none.
func (k PublicKey) IsZero() bool { return k.key == "" }

// content is what a key signs.
func content(id, timestamp string, body []byte) []byte {
	return append([]byte(id+"."+timestamp+"."), body...)
}
