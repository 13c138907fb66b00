package digest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxName is how many bytes of a name from outside are looked at, as many as a policy can have.
const maxName = 256

// Names says how names of users are written.
type Names uint8

const (
	// Hashed names are hashes under [Config.Key]: who knows a user finds what is about it ([HashUser]), and nobody reads names.
	Hashed Names = iota
	// Plain names are written as they are.
	Plain
	// Omitted names are left out.
	Omitted
)

// HashTenant returns the hash of a tenant, by which instances agree on whose operations they record. The key is [Config.Key].
func HashTenant(key []byte, tenant string) uint64 { return hashOf(key, 't', tenant, "") }

// HashUser returns the text that stands for a user of a tenant: h: and 16 hexadecimal digits. The key is [Config.Key].
func HashUser(key []byte, tenant, user string) string {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], hashOf(key, 'u', tenant, user))
	return "h:" + hex.EncodeToString(raw[:])
}

// HashKey returns a text that tells keys apart, and nothing of them.
func HashKey(key []byte) string {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], hashOf(key, 'k', "", ""))
	return hex.EncodeToString(raw[:])
}

// HashValue returns the text that stands for the value of a parameter of custom limits: 16 hexadecimal digits. The key is [Config.Key].
func HashValue(key []byte, parameter, value string) string {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], hashOf(key, 'v', parameter, value))
	return hex.EncodeToString(raw[:])
}

// hashOf returns the first 64 bits of the SHA-256 of a key, a kind, and names of at most maxName bytes. Of so few bits of it nobody
// computes on, so that the key may stand in front. It allocates nothing.
func hashOf(key []byte, kind byte, tenant, name string) uint64 {
	var room [maxKey + 2*(maxName+1) + 2]byte
	text := append(room[:0], byte(len(key)))
	text = append(append(text, key...), kind)
	text = append(append(text, cut(tenant)...), 0)
	text = append(append(text, cut(name)...), 0)
	sum := sha256.Sum256(text)
	return binary.BigEndian.Uint64(sum[:])
}

func cut(name string) string { return name[:min(len(name), maxName)] }

// written returns a name from outside as digests have it: cut, and, if somebody would not see each of its characters, escaped as Go
// escapes strings, so that two names stay two.
func written(name string) string {
	name = cut(name)
	plain := utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return r == '\\' || r == '"' || !strconv.IsPrint(r) })
	if plain {
		return strings.Clone(name)
	}
	quoted := strconv.Quote(name)
	return quoted[1 : len(quoted)-1]
}

// checkKey returns what is wrong with a key.
func checkKey(key []byte) error {
	if len(key) > 0 && len(key) < minKey || len(key) > maxKey {
		return fmt.Errorf("digest: Config.Key has %d bytes: write %d to %d that are random, the same in each instance, or none", len(key), minKey, maxKey)
	}
	return nil
}

const (
	minKey = 16
	maxKey = 64
)
