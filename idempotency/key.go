package idempotency

import (
	"errors"
	"fmt"
	"strings"
)

// The length of a key in characters.
const (
	MinKeyLength = 8
	MaxKeyLength = 128
)

// ErrKeyInvalid is matched by every error of [ParseKey].
var ErrKeyInvalid = errors.New("idempotency: invalid key")

// Key is a well-formed idempotency key: 8 to 128 characters of A–Z a–z 0–9 - _ and the full stop.
type Key string

// ParseKey reads the value of an Idempotency-Key header, as a structured string in double quotes
// (the form of the draft) or bare (the form most deployed APIs use). Both spellings give the same
// key. The error says what is wrong and never repeats the key itself.
func ParseKey(value string) (Key, error) {
	key := strings.Trim(value, " \t")
	if strings.HasPrefix(key, `"`) || strings.HasSuffix(key, `"`) {
		if len(key) < 2 || key[0] != '"' || key[len(key)-1] != '"' {
			return "", fmt.Errorf("%w: the quotation marks do not match", ErrKeyInvalid)
		}
		key = key[1 : len(key)-1]
	}
	if len(key) < MinKeyLength || len(key) > MaxKeyLength {
		return "", fmt.Errorf("%w: %d characters long, want %d to %d; a UUID fits",
			ErrKeyInvalid, len(key), MinKeyLength, MaxKeyLength)
	}
	for i := range len(key) {
		if !keyByte(key[i]) {
			return "", fmt.Errorf("%w: character %d is not one of A-Z a-z 0-9 . - _", ErrKeyInvalid, i+1)
		}
	}
	return Key(key), nil
}

func keyByte(b byte) bool {
	switch {
	case b >= 'A' && b <= 'Z', b >= 'a' && b <= 'z', b >= '0' && b <= '9':
		return true
	default:
		return b == '-' || b == '_' || b == '.'
	}
}
