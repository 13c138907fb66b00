// Package seal encrypts what a database keeps and whoever reads a copy of it must not know: AES-256-GCM, with a key that is not in the database.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

const (
	keySize = 32
	// nameSize is how many bytes name a key in what it has sealed.
	nameSize = 4
	// maxKeys is how many keys a file has.
	maxKeys = 16
	prefix  = "gqlratelimitd-seal-1:"
)

// ErrOtherKey says that something was sealed with a key that is not there.
var ErrOtherKey = errors.New("seal: it was encrypted with another key")

// errOpen says that something is not what was sealed.
var errOpen = errors.New("seal: what is stored was changed, or belongs elsewhere")

// errKey is what a text that should be a key gets: none of it is repeated.
var errKey = errors.New("seal: not a key, as NewKey returns it, or several, a line each")

// NewKey returns a random key as text.
func NewKey() string {
	key := make([]byte, keySize)
	// It never fails: crypto/rand ends the process first.
	_, _ = rand.Read(key)
	return prefix + base64.StdEncoding.EncodeToString(key)
}

// Box seals and opens. It is made by [New], prints as nothing, and is safe for concurrent use.
type Box struct {
	keys []key
}

type key struct {
	name [nameSize]byte
	aead cipher.AEAD
}

// New reads keys, a line each: the first one seals, and all open. So a key is changed by writing another one before it. Lines that are empty are passed over. The
// error repeats nothing of the text.
func New(text string) (*Box, error) {
	b := &Box{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		encoded, ok := strings.CutPrefix(line, prefix)
		raw, err := base64.StdEncoding.Strict().DecodeString(encoded)
		if !ok || err != nil || len(raw) != keySize || len(b.keys) == maxKeys {
			return nil, errKey
		}
		block, err := aes.NewCipher(raw)
		if err != nil {
			return nil, errKey
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, errKey
		}
		sum := sha256.Sum256([]byte("gqlratelimitd seal key name\x00" + string(raw)))
		b.keys = append(b.keys, key{[nameSize]byte(sum[:]), aead})
	}
	if len(b.keys) == 0 {
		return nil, errKey
	}
	return b, nil
}

// Seal encrypts a text that belongs to something, such as the row of a table: in the place of another it is not opened.
func (b *Box) Seal(of string, plain []byte) []byte {
	k := &b.keys[0]
	//nolint:gosec // It makes a random nonce for each text.
	return k.aead.Seal(k.name[:], nil, plain, []byte(of))
}

// Open decrypts what was sealed for the same thing. The error is [ErrOtherKey] if none of the keys has sealed it.
func (b *Box) Open(of string, sealed []byte) ([]byte, error) {
	if len(sealed) < nameSize {
		return nil, errOpen
	}
	for i := range b.keys {
		if k := &b.keys[i]; k.name == [nameSize]byte(sealed) {
			plain, err := k.aead.Open(nil, nil, sealed[nameSize:], []byte(of))
			if err != nil {
				return nil, errOpen
			}
			return plain, nil
		}
	}
	return nil, ErrOtherKey
}

// String returns the names of the keys.
func (b *Box) String() string {
	names := make([]string, len(b.keys))
	for i := range b.keys {
		names[i] = fmt.Sprintf("%x", b.keys[i].name)
	}
	return "seal.Box(" + strings.Join(names, " ") + ")"
}

// GoString returns what String does.
func (b *Box) GoString() string { return b.String() }

// LogValue returns what String does.
func (b *Box) LogValue() slog.Value { return slog.StringValue(b.String()) }
