package claims

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// storedAnswer is what is kept of an answer: data and errors, as the client got them. The extensions
// are made anew for each replay.
type storedAnswer struct {
	Errors []storedError   `json:"errors,omitempty"`
	Data   json.RawMessage `json:"data"`
}

// storedError is a gqlerror.Error of which every byte that the client sees comes back: decoding would
// round large numbers and sort the fields of structs.
type storedError struct {
	Message    storedText                 `json:"message"`
	Path       ast.Path                   `json:"path,omitempty"`
	Locations  []gqlerror.Location        `json:"locations,omitempty"`
	Extensions map[string]json.RawMessage `json:"extensions,omitempty"`
}

// storedText is a text that encodes to the same bytes again. An encoder writes bytes that are not UTF-8 as
// the escape of U+FFFD, and the character U+FFFD itself as it is: the escape stands for such a byte.
type storedText string

// UnmarshalJSON implements json.Unmarshaler.
func (s *storedText) UnmarshalJSON(raw []byte) error {
	const escape = `\ufffd`
	raw = bytes.TrimSuffix(bytes.TrimPrefix(raw, []byte{'"'}), []byte{'"'})
	var text strings.Builder
	from := 0
	add := func(to int) error {
		var part string
		err := json.Unmarshal([]byte(`"`+string(raw[from:to])+`"`), &part)
		text.WriteString(part)
		return err
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if !bytes.HasPrefix(raw[i:], []byte(escape)) {
			// Whatever is escaped is no beginning of another escape.
			i++
			continue
		}
		if err := add(i); err != nil {
			return err
		}
		text.WriteByte(0xff)
		from = i + len(escape)
		i = from - 1
	}
	err := add(len(raw))
	*s = storedText(text.String())
	return err
}

func (s *storedError) graphQL() *gqlerror.Error {
	restored := &gqlerror.Error{Message: string(s.Message), Path: s.Path, Locations: s.Locations}
	if len(s.Extensions) > 0 {
		restored.Extensions = make(map[string]any, len(s.Extensions))
	}
	for name, raw := range s.Extensions {
		var value any = raw
		var text storedText
		// Whoever looks at an error on its way, as gqlgen does at its code, expects a string to be one.
		if bytes.HasPrefix(raw, []byte{'"'}) && json.Unmarshal(raw, &text) == nil {
			value = string(text)
		}
		restored.Extensions[name] = value
	}
	return restored
}
