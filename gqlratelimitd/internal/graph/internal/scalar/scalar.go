// Package scalar reads and writes the numbers of the schema. JavaScript counts exactly up to 2^53 - 1, and so does the API.
package scalar

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
)

// largest is the largest number.
const largest = 1<<53 - 1

var (
	errRevision = errors.New("a revision is a whole number from 0 to 9007199254740991")
	errLong     = errors.New("a whole number from -9007199254740991 to 9007199254740991 fits")
)

// MarshalRevision writes the number of a revision.
func MarshalRevision(n uint64) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { _, _ = io.WriteString(w, strconv.FormatUint(n, 10)) })
}

// UnmarshalRevision reads the number of a revision.
func UnmarshalRevision(v any) (uint64, error) {
	n, ok := number(v)
	if !ok || n < 0 {
		return 0, errRevision
	}
	return uint64(n), nil
}

// MarshalLong writes a whole number.
func MarshalLong(n int64) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { _, _ = io.WriteString(w, strconv.FormatInt(n, 10)) })
}

// UnmarshalLong reads a whole number.
func UnmarshalLong(v any) (int64, error) {
	n, ok := number(v)
	if !ok {
		return 0, errLong
	}
	return n, nil
}

// number reads a number of a document or of a variable.
func number(v any) (n int64, ok bool) {
	switch v := v.(type) {
	case int64:
		n = v
	case int:
		n = int64(v)
	case json.Number:
		var err error
		if n, err = v.Int64(); err != nil {
			return 0, false
		}
	default:
		return 0, false
	}
	return n, -largest <= n && n <= largest
}
