package audit

import (
	"encoding/base64"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/note"
)

// Sign signs a text that is no checkpoint, such as a statement: as golang.org/x/mod/sumdb/note does it, with the name and the key of the log. The text
// is UTF-8 without control characters but for the ends of its lines, and ends with one; anything else is an error. What is signed must not look like a
// checkpoint, which begins with the name of the log in a line of its own.
func (k *Key) Sign(text string) ([]byte, error) {
	signed, err := note.Sign(&note.Note{Text: text}, k.signer)
	if err != nil {
		return nil, fmt.Errorf("audit: sign a text: %w", err)
	}
	return signed, nil
}

// OpenSigned returns the text that [Key.Sign] has signed, and by which of the public keys. A text has one form: another byte anywhere is an error. A key
// that is none is an error too.
func OpenSigned(signed []byte, keys ...string) (text, key string, err error) {
	for _, key := range keys {
		verifier, err := note.NewVerifier(key)
		if err != nil {
			return "", "", fmt.Errorf("audit: not a public key of a log: %w", err)
		}
		text, ok, err := openNote(signed, verifier)
		if err != nil || ok {
			return text, key, err
		}
	}
	return "", "", errSignedText
}

var errSignedText = errors.New("audit: no key that was given has signed it: it was changed, is something else, or is another key's")

// openNote returns the text of a note that a key has signed, and whether it has. There is one signature, in one text: another, or what base64 leaves open,
// would be bytes that nothing verifies, which is an error.
func openNote(signed []byte, verifier note.Verifier) (text string, ok bool, _ error) {
	n, err := note.Open(signed, note.VerifierList(verifier))
	// Otherwise another key may have signed it.
	if err == nil {
		s := n.Sigs[0]
		_, loose := base64.StdEncoding.Strict().DecodeString(s.Base64)
		if loose != nil || string(signed) != n.Text+"\n— "+s.Name+" "+s.Base64+"\n" {
			return "", false, errSignedText
		}
		text = n.Text
	}
	return text, err == nil, nil
}
