package policy

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
)

// signedPrefix keeps signatures of revisions apart from those of anything else that a key may sign.
const signedPrefix = "gqlgen-ratelimit policy revision 1\x00"

// Sign signs number, hash, author, reason and time of the revision: a revision that an attacker copies under another
// number is not signed. Sign with a key of its own for each fleet, or what is signed for one fits another.
func (r *Revision) Sign(key ed25519.PrivateKey) {
	r.Signature = ed25519.Sign(key, r.signed())
}

// errUnsigned is a revision without a signature.
var errUnsigned = errors.New("it is not signed, and Config.Keys asks for a signature")

// errForged is a revision with the signature of another one, or of an unknown key.
var errForged = errors.New("its signature is of no key in Config.Keys, or of other content")

// Verify returns nil if one of the keys has signed the revision, and otherwise a [*RefusedError]. Keys of a wrong length
// have signed nothing.
func (r *Revision) Verify(keys []ed25519.PublicKey) error {
	if len(r.Signature) == 0 {
		return r.refuse(ReasonSignature, errUnsigned)
	}
	message := r.signed()
	for _, key := range keys {
		if len(key) == ed25519.PublicKeySize && ed25519.Verify(key, message, r.Signature) {
			return nil
		}
	}
	return r.refuse(ReasonSignature, errForged)
}

// signed is what is signed. The hash stands for the document, and lengths stand before texts, so that no two revisions
// have the same bytes.
func (r *Revision) signed() []byte {
	message := make([]byte, 0, len(signedPrefix)+8+len(r.Hash)+8+16+len(r.Author)+len(r.Reason))
	message = append(message, signedPrefix...)
	message = binary.BigEndian.AppendUint64(message, r.Number)
	message = append(message, r.Hash[:]...)
	message = binary.BigEndian.AppendUint64(message, uint64(r.published()))
	for _, text := range [...]string{r.Author, r.Reason} {
		message = binary.BigEndian.AppendUint64(message, uint64(len(text)))
		message = append(message, text...)
	}
	return message
}
