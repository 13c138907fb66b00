package digest

import "github.com/gqlgen-ratelimit/ratelimit/internal/pseudonym"

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
func HashTenant(key []byte, tenant string) uint64 { return pseudonym.Hash(key, 't', tenant, "") }

// HashUser returns the text that stands for a user of a tenant: h: and 16 hexadecimal digits. The key is [Config.Key].
func HashUser(key []byte, tenant, user string) string {
	return pseudonym.Text(pseudonym.User(key, tenant, user))
}

// HashKey returns a text that tells keys apart, and nothing of them.
func HashKey(key []byte) string { return pseudonym.Digits(pseudonym.Hash(key, 'k', "", "")) }

// HashValue returns the text that stands for the value of a parameter of custom limits: 16 hexadecimal digits. The key is [Config.Key].
func HashValue(key []byte, parameter, value string) string {
	return pseudonym.Digits(pseudonym.Hash(key, 'v', parameter, value))
}
