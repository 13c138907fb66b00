package access

import (
	"crypto/hmac"
	"crypto/sha256"
	"strings"
)

const (
	idLength     = 13 // of 8 bytes in base32
	secretLength = 52 // of 32 bytes
	markBytes    = 4
	markLength   = 7 // of 4 bytes
	tokenLength  = len(TokenPrefix) + idLength + 1 + secretLength + markLength
)

// TokenKey is the secret with which a control plane makes its tokens, and by which it recognises them: 32 random bytes, which stay the same for as long as
// the tokens are kept. Who has it makes texts that are looked up, and no token that holds.
type TokenKey [32]byte

// mark returns the mark of what stands before it.
func (k TokenKey) mark(text string) string {
	mac := hmac.New(sha256.New, k[:])
	// A hash takes everything.
	_, _ = mac.Write([]byte(text))
	return lower.EncodeToString(mac.Sum(nil)[:markBytes])
}

// tokenID returns the ID of a token that was made with the key, also of one that holds no longer. It takes as long for each mark.
func (k TokenKey) tokenID(text string) (string, bool) {
	if len(text) != tokenLength || !strings.HasPrefix(text, TokenPrefix) || text[len(TokenPrefix)+idLength] != '_' {
		return "", false
	}
	body := text[:tokenLength-markLength]
	if !hmac.Equal([]byte(k.mark(body)), []byte(text[len(body):])) {
		return "", false
	}
	return text[len(TokenPrefix):][:idLength], true
}
