package audit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Checkpoint says what a log was at a time. Who has one signed knows that every later state of the log begins with the same
// entries, or that it was tampered with.
type Checkpoint struct {
	// Name is the name of the log.
	Name string
	// Size is how many entries it had, and Root the root of the Merkle tree over them.
	Size int64
	Root tlog.Hash
	// Time is when it was signed, in UTC to the microsecond.
	Time time.Time
	// Key is the public key that signs the next checkpoint.
	Key string
}

// maxCheckpoint is how many bytes a signed checkpoint has at most: the name, the public key, and a signature.
const maxCheckpoint = 3*MaxName + 1024

// text returns what is signed: the lines of c2sp.org/tlog-checkpoint, with two lines of our own.
func (c *Checkpoint) text() string {
	return fmt.Sprintf("%s\n%d\n%s\ntime %s\nkey %s\n", c.Name, c.Size, c.Root, c.Time.UTC().Format(timeFormat), c.Key)
}

var (
	errNoCheckpoint = errors.New("audit: not a signed checkpoint")
	errSignature    = errors.New("audit: the checkpoint is not signed by a key that was given")
)

// OpenCheckpoint reads a signed checkpoint, if one of the public keys has signed it. A key that is none is an error.
func OpenCheckpoint(signed []byte, keys ...string) (*Checkpoint, error) {
	c, _, err := openCheckpoint(signed, keys)
	return c, err
}

// ReadCheckpoint reads what a signed checkpoint says without asking who has signed it: for who has it from the log itself, and passes it
// on with a proof. Who is given one opens it with [OpenCheckpoint].
func ReadCheckpoint(signed []byte) (*Checkpoint, error) { return readCheckpoint(signed) }

// openCheckpoint reads a signed checkpoint and returns which of the keys has signed it.
func openCheckpoint(signed []byte, keys []string) (*Checkpoint, string, error) {
	c, err := readCheckpoint(signed)
	if err != nil {
		return nil, "", err
	}
	verifiers := make([]note.Verifier, len(keys))
	for i, key := range keys {
		if verifiers[i], err = note.NewVerifier(key); err != nil {
			return nil, "", fmt.Errorf("audit: not a public key of a log: %w", err)
		}
	}
	for i, verifier := range verifiers {
		_, ok, err := openNote(signed, verifier)
		if err != nil {
			return nil, "", errNoCheckpoint
		}
		if ok && verifier.Name() == c.Name {
			return c, keys[i], nil
		}
	}
	return nil, "", errSignature
}

// readCheckpoint reads what a checkpoint says, whoever has signed it.
func readCheckpoint(signed []byte) (*Checkpoint, error) {
	if len(signed) > maxCheckpoint {
		return nil, errNoCheckpoint
	}
	text, _, ok := strings.Cut(string(signed), "\n\n")
	lines := strings.Split(text, "\n")
	if !ok || len(lines) != 5 {
		return nil, errNoCheckpoint
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 {
		return nil, errNoCheckpoint
	}
	root, err := tlog.ParseHash(lines[2])
	if err != nil {
		return nil, errNoCheckpoint
	}
	at, err := time.Parse("time "+timeFormat, lines[3])
	if err != nil {
		return nil, errNoCheckpoint
	}
	c := &Checkpoint{Name: lines[0], Size: size, Root: root, Time: at, Key: strings.TrimPrefix(lines[4], "key ")}
	key, err := note.NewVerifier(c.Key)
	// Written again it has to be the same text: a checkpoint has one.
	if err != nil || key.Name() != c.Name || c.text() != text+"\n" {
		return nil, errNoCheckpoint
	}
	return c, nil
}

// sign signs a checkpoint.
func (c *Checkpoint) sign(key *Key) ([]byte, error) {
	return key.Sign(c.text())
}
