package edge

import (
	"bytes"
	"encoding/json"

	"github.com/99designs/gqlgen/graphql"
)

// bytesPerValue is what each value of JSON counts besides its own bytes: to decode it takes as long as to read that much text,
// and more.
const bytesPerValue = 16

// values counts the values of a text of JSON without decoding it: objects, lists and what is in them, at every depth. The zero
// value is at the beginning of a text, which may come in pieces. Of a text that is no JSON it counts what looks like values.
// It is not safe for concurrent use.
type values struct {
	// n is how many there are so far.
	n int
	// begun says that the first has come, opened that the last byte began an object or a list, text that it is within a string, and
	// escaped that it was a backslash there.
	begun, opened, text, escaped bool
}

// next begins another text, and keeps the count.
func (v *values) next() { *v = values{n: v.n} }

// count reads a piece.
func (v *values) count(p []byte) {
	for _, c := range p {
		switch {
		case v.escaped:
			v.escaped = false
			continue
		case v.text:
			v.text, v.escaped = c != '"', c == '\\'
			continue
		case c == ' ', c == '\n', c == '\r', c == '\t':
			continue
		case !v.begun, v.opened && c != '}' && c != ']':
			v.n++
		}
		v.begun, v.opened = true, c == '{' || c == '['
		switch c {
		case '"':
			v.text = true
		case ',':
			v.n++
		}
	}
}

// valuesIn counts the values of a body, which is JSON if it begins as that does.
func valuesIn(body []byte) int {
	begin := bytes.TrimLeft(body, " \n\r\t")
	if len(begin) == 0 || begin[0] != '{' && begin[0] != '[' {
		return 0
	}
	var v values
	v.count(begin)
	return v.n
}

// tally is what decoded JSON holds.
type tally struct {
	// values is how many values there are, and bytes is how long all strings and names in them are.
	values, bytes int
}

// bytesPerHeld is how many bytes of strings hold as much as one more value.
const bytesPerHeld = 64

// held is what it counts for while an operation is under way.
func (t *tally) held() int { return t.values + t.bytes/bytesPerHeld }

// members adds the members of an object, until there are more values than most. A negative most is none.
func (t *tally) members(object map[string]any, most int) {
	for name, value := range object {
		if over(t.values, most) {
			return
		}
		t.bytes += len(name)
		t.add(value, most)
	}
}

func (t *tally) add(value any, most int) {
	t.values++
	switch value := value.(type) {
	case string:
		t.bytes += len(value)
	case json.Number:
		t.bytes += len(value)
	case map[string]any:
		t.members(value, most)
	case []any:
		for _, element := range value {
			if over(t.values, most) {
				return
			}
			t.add(element, most)
		}
	}
}

// hold refuses an operation whose variables or extensions have too many values, and takes room for those of a request of HTTP
// until it ends.
func (d *Door) hold(a *arrival, params *graphql.RawParams) *refusal {
	if broken := d.cfg.Documents.countExtensions(params.Extensions); broken != nil {
		return broken.refusal()
	}
	var t tally
	if t.members(params.Variables, d.cfg.Request.MaxValues); over(t.values, d.cfg.Request.MaxValues) {
		return (&bound{ruleValues, t.values, d.cfg.Request.MaxValues}).refusal()
	}
	if a.socket != nil {
		return nil // which counts what runs
	}
	t.members(params.Extensions, None)
	if refusal := a.hold(t.held()); refusal != nil {
		return refusal
	}
	a.values.Add(int64(t.held()))
	return nil
}

// hold takes room for so many values.
func (a *arrival) hold(n int) *refusal {
	switch a.door.held.enter(a.client, a.site, n) {
	case roomless:
		return overloaded("the operations that are under way have too many values in their variables")
	case crowded:
		return tooMany(LayerAddress, "the operations of this address that are under way have too many values in their variables: wait for their answers")
	default:
		return nil
	}
}

// letGo gives back the room that a request of HTTP took.
func (a *arrival) letGo() {
	if n := a.values.Swap(0); n > 0 {
		a.door.held.leave(a.client, a.site, int(n))
	}
}
