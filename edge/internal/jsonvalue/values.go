// Package jsonvalue counts the values of JSON in a text and in what was decoded, because they take memory and time far beyond
// their bytes.
package jsonvalue

import (
	"bytes"
	"encoding/json"
)

// Bytes is what each value of JSON counts besides its own bytes: to decode it takes as long as to read that much text,
// and more.
const Bytes = 16

// Counter counts the values of a text of JSON without decoding it: objects, lists and what is in them, at every depth. The zero
// value is at the beginning of a text, which may come in pieces. Of a text that is no JSON it counts what looks like values.
// It is not safe for concurrent use.
type Counter struct {
	// N is how many there are so far.
	N int
	// begun says that the first has come, opened that the last byte began an object or a list, text that it is within a string, and
	// escaped that it was a backslash there.
	begun, opened, text, escaped bool
}

// Next begins another text, and keeps the count.
func (c *Counter) Next() { *c = Counter{N: c.N} }

// Count reads a piece.
func (c *Counter) Count(p []byte) {
	for _, b := range p {
		switch {
		case c.escaped:
			c.escaped = false
			continue
		case c.text:
			c.text, c.escaped = b != '"', b == '\\'
			continue
		case b == ' ', b == '\n', b == '\r', b == '\t':
			continue
		case !c.begun, c.opened && b != '}' && b != ']':
			c.N++
		}
		c.begun, c.opened = true, b == '{' || b == '['
		switch b {
		case '"':
			c.text = true
		case ',':
			c.N++
		}
	}
}

// In counts the values of a body, which is JSON if it begins as that does.
func In(body []byte) int {
	begin := bytes.TrimLeft(body, " \n\r\t")
	if len(begin) == 0 || begin[0] != '{' && begin[0] != '[' {
		return 0
	}
	var c Counter
	c.Count(begin)
	return c.N
}

// Tally is what decoded JSON holds.
type Tally struct {
	// Values is how many values there are.
	Values int
	// bytes is how long all strings and names in them are.
	bytes int
}

// bytesPerHeld is how many bytes of strings hold as much as one more value.
const bytesPerHeld = 64

// Held is what it counts for while an operation is under way.
func (t *Tally) Held() int { return t.Values + t.bytes/bytesPerHeld }

// Members adds the members of an object, until there are more values than most.
func (t *Tally) Members(object map[string]any, most int) {
	for name, value := range object {
		if t.Values > most {
			return
		}
		t.bytes += len(name)
		t.add(value, most)
	}
}

func (t *Tally) add(value any, most int) {
	t.Values++
	switch value := value.(type) {
	case string:
		t.bytes += len(value)
	case json.Number:
		t.bytes += len(value)
	case map[string]any:
		t.Members(value, most)
	case []any:
		for _, element := range value {
			if t.Values > most {
				return
			}
			t.add(element, most)
		}
	}
}
