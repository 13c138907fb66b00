package idempotency

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// Fingerprint identifies what was asked for under a key, so that a key that is used again for
// something else is told from a replay. It is the first half of a SHA-256.
type Fingerprint [16]byte

// NewFingerprint returns the fingerprint of an operation: its document, the name of the operation
// that was selected in it, and the coerced variables. Variables are compared by their JSON, in
// which map keys are sorted. It returns an error if a variable has no JSON form.
func NewFingerprint(document, operationName string, variables map[string]any) (Fingerprint, error) {
	encoded, err := json.Marshal(variables)
	if err != nil {
		return Fingerprint{}, fmt.Errorf("idempotency: fingerprint of the variables: %w", err)
	}
	h := sha256.New()
	var n [8]byte
	for _, part := range [][]byte{[]byte(document), []byte(operationName), encoded} {
		binary.LittleEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	return Fingerprint(h.Sum(nil)[:16]), nil
}
