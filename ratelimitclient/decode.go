package ratelimitclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// extensionKey is where the facts stand in the extensions of a response.
const extensionKey = "rateLimit"

// Response is what a whole GraphQL response says about limits.
type Response struct {
	// RateLimit is the value of extensions.rateLimit. Nil means that the server sent none.
	RateLimit *RateLimit
	// Refusal is the first refusal among the errors. Nil means that nothing was refused; the
	// operation may have failed for another reason.
	Refusal *Refusal
}

// FromResponse reads the body of a GraphQL response, or one event of a stream of them. It returns an
// error if the body is not a JSON object or the value of extensions.rateLimit is not one of ours, and
// with the error what could be read all the same. A refusal is not such an error.
func FromResponse(body []byte) (Response, error) {
	var wire struct {
		Errors     json.RawMessage `json:"errors"`
		Extensions json.RawMessage `json:"extensions"`
	}
	if err := json.Unmarshal(body, &wire); err != nil {
		return Response{}, fmt.Errorf("ratelimitclient: response: %w", err)
	}
	var response Response
	if refusal, ok := FromErrors(wire.Errors); ok {
		response.Refusal = refusal
	}
	limits, ok, err := FromExtensions(wire.Extensions)
	if ok {
		response.RateLimit = &limits
	}
	return response, err
}

// FromExtensions reads the value of rateLimit out of the extensions of a response. The extensions
// are raw JSON ([]byte or [json.RawMessage]), or a map as client libraries decode them, or any other
// value that marshals to the same JSON object. It returns false if there is no such value, and an
// error if there is one that is not ours.
func FromExtensions(extensions any) (RateLimit, bool, error) {
	if m, ok := extensions.(map[string]any); ok {
		// The other extensions need not be marshalled.
		extensions = map[string]any{extensionKey: m[extensionKey]}
	}
	data, err := rawJSON(extensions)
	if err != nil || len(data) == 0 {
		return RateLimit{}, false, err
	}
	var wire struct {
		RateLimit *RateLimit `json:"rateLimit"`
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return RateLimit{}, false, fmt.Errorf("ratelimitclient: extensions: %w", err)
	}
	if wire.RateLimit == nil {
		return RateLimit{}, false, nil
	}
	return *wire.RateLimit, true, nil
}

// FromErrors returns the first refusal among the errors of a response, and false if there is none.
// The errors are raw JSON ([]byte or [json.RawMessage]), or the list of a client library, or any
// other value that marshals to the same JSON array: an element has a message and extensions.
//
// What would command a terminal in the message is escaped. Errors with other codes are none of ours. A refusal whose other extensions are malformed still is
// one: what cannot be read is left zero.
func FromErrors(graphqlErrors any) (*Refusal, bool) {
	// What is not JSON has no refusal: the data is empty then.
	data, _ := rawJSON(graphqlErrors)
	if len(data) == 0 {
		return nil, false
	}
	// Element by element, because a list of many small elements is larger decoded than as JSON.
	elements := json.NewDecoder(bytes.NewReader(data))
	if start, err := elements.Token(); err != nil || start != json.Delim('[') {
		return nil, false //nolint:nilerr // what is no list has no refusal
	}
	type graphqlError struct {
		Message    string            `json:"message"`
		Extensions refusalExtensions `json:"extensions"`
	}
	var wire graphqlError
	for elements.More() {
		wire = graphqlError{}
		var malformed *json.UnmarshalTypeError
		if err := elements.Decode(&wire); err != nil && !errors.As(err, &malformed) {
			return nil, false
		}
		if IsCode(wire.Extensions.Code) {
			refusal := wire.Extensions.refusal(printable(wire.Message))
			return &refusal, true
		}
	}
	return nil, false
}

// Servers send at most 64 limits and 1000 entries. A list of many small elements is much larger decoded than as JSON, so that
// one that is too long is not decoded to its end.
const (
	maxLimits  = 256
	maxEntries = 2000
)

var errTooLong = errors.New("ratelimitclient: a list is too long")

// readList reads a list of at most so many elements. No list, and null, leave the list as it is.
func readList[T any](list *[]T, data json.RawMessage, most int) error {
	if len(data) == 0 || string(data) == "null" {
		return nil
	}
	elements := json.NewDecoder(bytes.NewReader(data))
	if start, err := elements.Token(); err != nil || start != json.Delim('[') {
		return fmt.Errorf("ratelimitclient: no list: %.20s", data)
	}
	read := []T{}
	for elements.More() {
		if len(read) == most {
			return fmt.Errorf("%w: more than %d elements", errTooLong, most)
		}
		var element T
		if err := elements.Decode(&element); err != nil {
			return err
		}
		read = append(read, element)
	}
	*list = read
	return nil
}

// printable escapes what a terminal or a log would obey: control characters, and those that turn the direction of text.
func printable(text string) string {
	obeyed := func(r rune) bool {
		return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
	}
	if !strings.ContainsFunc(text, obeyed) {
		return text
	}
	var escaped strings.Builder
	for _, r := range text {
		if obeyed(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			escaped.WriteString(quoted[1 : len(quoted)-1])
		} else {
			escaped.WriteRune(r)
		}
	}
	return escaped.String()
}

// rawJSON returns the value as JSON.
func rawJSON(value any) ([]byte, error) {
	switch v := value.(type) {
	case json.RawMessage:
		return v, nil
	case []byte:
		return v, nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("ratelimitclient: not JSON: %w", err)
	}
	return data, nil
}
