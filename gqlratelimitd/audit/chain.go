package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Hash is the hash of a row. The hash before the first row is zero.
type Hash [sha256.Size]byte

// String returns the hash in hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Row is an entry as it is stored.
type Row struct {
	// Record is the exact bytes of the entry: [Entry.Record].
	Record []byte
	// Hash is [ChainHash] of the row before and of the record.
	Hash Hash
}

// ChainHash returns the hash of a row: SHA-256 of the hash of the row before it, followed by its record.
func ChainHash(before Hash, record []byte) (hash Hash) {
	digest := sha256.New()
	// A hash never fails.
	_, _ = digest.Write(before[:])
	_, _ = digest.Write(record)
	digest.Sum(hash[:0])
	return hash
}

// Mark is a row that is known from elsewhere: its number and its hash.
type Mark struct {
	Sequence int64
	Hash     Hash
}

// String returns the text that [ParseMark] reads: number:hash.
func (m Mark) String() string { return strconv.FormatInt(m.Sequence, 10) + ":" + m.Hash.String() }

var errMark = errors.New("audit: a known row is written as number:hash, with 64 hexadecimal digits")

// ParseMark reads the text of [Mark.String].
func ParseMark(text string) (m Mark, err error) {
	number, digits, _ := strings.Cut(text, ":")
	if m.Sequence, err = strconv.ParseInt(number, 10, 64); err != nil || m.Sequence < 0 {
		return Mark{}, errMark
	}
	if m.Hash, err = parseHash(digits); err != nil {
		return Mark{}, errMark
	}
	return m, nil
}

// parseHash reads the lower-case hexadecimal digits of a hash. A hash has one text.
func parseHash(digits string) (hash Hash, err error) {
	if len(digits) != hex.EncodedLen(len(hash)) || strings.ToLower(digits) != digits {
		return hash, errNoHash
	}
	if _, err := hex.Decode(hash[:], []byte(digits)); err != nil {
		return hash, errNoHash
	}
	return hash, nil
}

var errNoHash = errors.New("audit: not a hash")

// TamperError says that a log is not what it was.
type TamperError struct {
	// Row is the number of the first row that is wrong or missing.
	Row int64
	// Problem is what is wrong with it.
	Problem string
}

// Error names the row and says what is wrong with it.
func (e *TamperError) Error() string { return fmt.Sprintf("audit: row %d %s", e.Row, e.Problem) }
