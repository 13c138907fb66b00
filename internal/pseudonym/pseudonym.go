// Package pseudonym writes names from outside where instances tell them: cut, so that each of their characters is seen, or as hashes that
// nobody else can make.
package pseudonym

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// MaxName is how many bytes of a name from outside are looked at, as many as a policy can have.
	MaxName = 256

	minKey = 16
	maxKey = 64
)

// Cut returns the bytes of a name that are looked at.
func Cut(name string) string { return name[:min(len(name), MaxName)] }

// Written returns a name as it is told: cut, and, if somebody would not see each of its characters, escaped as Go escapes strings, so that two
// names stay two. It is a copy.
func Written(name string) string {
	name = Cut(name)
	plain := utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return r == '\\' || r == '"' || !strconv.IsPrint(r) })
	if plain {
		return strings.Clone(name)
	}
	quoted := strconv.Quote(name)
	return quoted[1 : len(quoted)-1]
}

// Hash returns the first 64 bits of the SHA-256 of a key, a kind, and names, both cut. Of so few bits of it nobody computes on, so that the key may stand in
// front. It allocates nothing.
func Hash(key []byte, kind byte, tenant, name string) uint64 {
	var room [maxKey + 2*(MaxName+1) + 2]byte
	text := append(room[:0], byte(len(key)))
	text = append(append(text, key...), kind)
	text = append(append(text, Cut(tenant)...), 0)
	text = append(append(text, Cut(name)...), 0)
	sum := sha256.Sum256(text)
	return binary.BigEndian.Uint64(sum[:])
}

// User returns the hash of a user of a tenant, and Team that of a team.
func User(key []byte, tenant, user string) uint64 { return Hash(key, 'u', tenant, user) }

// Team returns the hash of a team of a tenant.
func Team(key []byte, tenant, team string) uint64 { return Hash(key, 'u', tenant, "team\x00"+team) }

// Digits returns a hash as 16 hexadecimal digits.
func Digits(hash uint64) string {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], hash)
	return hex.EncodeToString(raw[:])
}

// Text returns what stands for a name of a hash: h: and its digits.
func Text(hash uint64) string { return "h:" + Digits(hash) }

// CheckKey returns what is wrong with the key of a configuration, which the error names as the field.
func CheckKey(field string, key []byte) error {
	if len(key) > 0 && len(key) < minKey || len(key) > maxKey {
		return fmt.Errorf("%s has %d bytes: write %d to %d that are random, the same in each instance, or none", field, len(key), minKey, maxKey)
	}
	return nil
}
