package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// errKey is what a text that should be a private key gets: none of it is repeated.
var errKey = errors.New("audit: not a private key of a log, as NewKey returns it")

// NewKey makes an Ed25519 key for a log. The name is that of the log, such as log.example.org, and stays when the key is changed for
// another. The private key is a text that [ParseKey] reads, and the public one what [Verify] asks for; their form is that of
// golang.org/x/mod/sumdb/note.
func NewKey(name string) (private, public string, err error) {
	if name == "" || len(name) > MaxName || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == '+' }) {
		return "", "", fmt.Errorf("audit: the name of a log has 1 to %d characters of ASCII, without spaces and +", MaxName)
	}
	private, public, err = note.GenerateKey(rand.Reader, name)
	if err != nil {
		return "", "", fmt.Errorf("audit: make a key: %w", err)
	}
	return private, public, nil
}

// Key signs checkpoints. It prints as its public key. It is safe for concurrent use.
type Key struct {
	signer note.Signer
	public string
}

// ParseKey reads a private key. Spaces around it are taken for the end of a file. The error repeats nothing of it.
func ParseKey(private string) (*Key, error) {
	private = strings.TrimSpace(private)
	signer, err := note.NewSigner(private)
	if err != nil {
		return nil, errKey
	}
	// The fifth part is the kind of the key, one byte, and its seed. It was read above.
	parts := strings.SplitN(private, "+", 5)
	data, err := base64.StdEncoding.DecodeString(parts[len(parts)-1])
	if err != nil || len(data) != 1+ed25519.SeedSize {
		return nil, errKey
	}
	key, _ := ed25519.NewKeyFromSeed(data[1:]).Public().(ed25519.PublicKey)
	public, err := note.NewEd25519VerifierKey(signer.Name(), key)
	if err != nil {
		return nil, errKey
	}
	return &Key{signer, public}, nil
}

// Name returns the name of the log.
func (k *Key) Name() string { return k.signer.Name() }

// Public returns the public key.
func (k *Key) Public() string { return k.public }

// String returns the public key.
func (k *Key) String() string { return k.public }

// GoString returns the public key.
func (k *Key) GoString() string { return "audit.Key(" + k.public + ")" }

// LogValue returns the public key.
func (k *Key) LogValue() slog.Value { return slog.StringValue(k.public) }
