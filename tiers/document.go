package tiers

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// documentPrefix is what the id of a document begins with.
const documentPrefix = "sha256:"

// DocumentID returns the id of a GraphQL document, as operation rules name it: sha256: and, in lower case hexadecimal,
// the SHA-256 of the text without blanks, line ends, commas and comments, as stripIgnoredCharacters of graphql-js
// leaves it. Documents that differ in these alone have one id. Of a text that is stripped already it is the identifier
// of the Persisted Documents of GraphQL over HTTP and, without the prefix, the hash of Automatic Persisted Queries.
//
// It takes time by the length of the text.
func DocumentID(text string) string {
	sum := sha256.Sum256([]byte(stripIgnored(text)))
	return documentPrefix + hex.EncodeToString(sum[:])
}

// isDocument reports whether the spelling of an operation rule is meant to be the id of a document.
func isDocument(spelling string) bool {
	return strings.HasPrefix(spelling, documentPrefix)
}

func isDocumentID(spelling string) bool {
	digits := strings.TrimPrefix(spelling, documentPrefix)
	return len(digits) == hex.EncodedLen(sha256.Size) && strings.Trim(digits, "0123456789abcdef") == ""
}

// namesDocuments reports whether a policy has a rule for a document.
func (p *Policy) namesDocuments() (named bool) {
	p.eachOperations(func(r ruled) {
		named = named || anyDocument(r.operations) || anyDocument(r.personal)
	})
	return named
}

func anyDocument[T any](rules map[string]T) bool {
	for spelling := range rules {
		if isDocument(spelling) {
			return true
		}
	}
	return false
}
