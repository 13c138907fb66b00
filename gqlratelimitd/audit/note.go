package audit

import (
	"encoding/base64"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/note"
)

// Sign signs a text as golang.org/x/mod/sumdb/note does it, with the name and the key of the log. The text is UTF-8 without control
// characters but for the ends of its lines, and ends with one; anything else is an error.
func (k *Key) Sign(text string) ([]byte, error) {
	signed, err := note.Sign(&note.Note{Text: text}, k.signer)
	if err != nil {
		return nil, fmt.Errorf("audit: sign a text: %w", err)
	}
	return signed, nil
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
