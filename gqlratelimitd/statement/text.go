package statement

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
)

const (
	format     = "gqlratelimit.statement.v1"
	timeFormat = "2006-01-02T15:04:05.000000Z"
)

// Text returns the canonical text, which is what is signed: the first line is a JSON object of what the statement is of, and each further one that of a line or of
// a difference. Fields stand in their order, without spaces, and those that are empty are left out of the first line; numbers are there always. Characters are
// escaped where JSON asks for it and nowhere else. The error is an [*Error].
func (s *Statement) Text() (string, error) {
	if err := s.Check(); err != nil {
		return "", err
	}
	return s.text(), nil
}

func (s *Statement) text() string {
	var w writer
	w.text("format", format)
	w.number("number", int64(s.Number))
	w.text("tenant", s.Tenant)
	w.text("from", s.From.UTC().Format(time.DateOnly))
	w.text("to", s.To.UTC().Format(time.DateOnly))
	w.text("frozen", s.Frozen.UTC().Format(timeFormat))
	w.text("collected", s.Collected.UTC().Format(timeFormat))
	if !s.Unknown.IsZero() {
		w.text("unknown", s.Unknown.UTC().Format(timeFormat))
	}
	w.reference("previous", s.Previous)
	w.reference("corrects", s.Corrects)
	w.end()
	for i := range s.Lines {
		w.line(&s.Lines[i], false)
	}
	for i := range s.Differences {
		w.line(&s.Differences[i], true)
	}
	return w.String()
}

// Hash returns the hash of the text, by which others name the statement.
func (s *Statement) Hash() Hash { return sha256.Sum256([]byte(s.text())) }

// Sign returns the text with the signature of a key of the audit log. The error is an [*Error], or that of the key.
func (s *Statement) Sign(key *audit.Key) ([]byte, error) {
	text, err := s.Text()
	if err != nil {
		return nil, err
	}
	signed, err := key.Sign(text)
	if err == nil && len(signed) > MaxBytes {
		err = wrong("it has %d bytes, want at most %d", len(signed), MaxBytes)
	}
	return signed, err
}

// Open reads a signed statement, if one of the public keys has signed it, and returns which. The bytes have to be those that [Statement.Sign] writes: other ones that
// would be read as the same statement are an error. The error is an [*Error], or says that no key has signed it.
func Open(signed []byte, keys ...string) (_ *Statement, key string, _ error) {
	if len(signed) > MaxBytes {
		return nil, "", wrong("it has %d bytes, want at most %d", len(signed), MaxBytes)
	}
	text, key, err := audit.OpenSigned(signed, keys...)
	if err != nil {
		return nil, "", err
	}
	s, err := parse(text)
	return s, key, err
}

// Read reads a signed statement without asking who has signed it: for who has it from where it is kept. Who is given one opens it with [Open].
func Read(signed []byte) (*Statement, error) {
	text, _, ok := strings.Cut(string(signed), "\n\n")
	if !ok || len(signed) > MaxBytes {
		return nil, errFormat
	}
	return parse(text + "\n")
}

var errFormat = &Error{"these are not the canonical bytes of a statement"}

// parse reads a text.
func parse(text string) (*Statement, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > 1+3*MaxLines {
		return nil, errFormat
	}
	s, err := parseHead(lines[0])
	if err != nil {
		return nil, err
	}
	for _, line := range lines[1:] {
		var read struct {
			Difference bool   `json:"difference"`
			Unit       string `json:"unit"`
			Field      string `json:"field"`
			Grade      string `json:"grade"`
			Charged    int64  `json:"charged"`
			GivenBack  int64  `json:"givenBack"`
			Net        int64  `json:"net"`
			Calls      int64  `json:"calls"`
		}
		if json.Unmarshal([]byte(line), &read) != nil {
			return nil, errFormat
		}
		into := &s.Lines
		if read.Difference {
			into = &s.Differences
		}
		l := Line{read.Unit, read.Field, read.Grade, read.Charged, read.GivenBack, read.Calls}
		if read.Net != l.Net() {
			return nil, wrong("the net of line %d is not what was charged and not given back", len(*into)+1)
		}
		*into = append(*into, l)
	}
	again, err := s.Text()
	if err != nil {
		return nil, err
	}
	// Written again it has to be the same text: a statement has one.
	if again != text {
		return nil, errFormat
	}
	return s, nil
}

func parseHead(line string) (*Statement, error) {
	type reference struct {
		Number uint64 `json:"number"`
		Hash   string `json:"hash"`
	}
	var read struct {
		Format    string    `json:"format"`
		Number    uint64    `json:"number"`
		Tenant    string    `json:"tenant"`
		From      string    `json:"from"`
		To        string    `json:"to"`
		Frozen    string    `json:"frozen"`
		Collected string    `json:"collected"`
		Unknown   string    `json:"unknown"`
		Previous  reference `json:"previous"`
		Corrects  reference `json:"corrects"`
	}
	if json.Unmarshal([]byte(line), &read) != nil || read.Format != format {
		return nil, errFormat
	}
	s := &Statement{Number: read.Number, Tenant: read.Tenant}
	for _, t := range [...]struct {
		text, form string
		into       *time.Time
	}{
		{read.From, time.DateOnly, &s.From},
		{read.To, time.DateOnly, &s.To},
		{read.Frozen, timeFormat, &s.Frozen},
		{read.Collected, timeFormat, &s.Collected},
		{read.Unknown, timeFormat, &s.Unknown},
	} {
		if t.text == "" {
			continue
		}
		at, err := time.Parse(t.form, t.text)
		if err != nil {
			return nil, errFormat
		}
		*t.into = at
	}
	for _, r := range [...]struct {
		read *reference
		into *Reference
	}{{&read.Previous, &s.Previous}, {&read.Corrects, &s.Corrects}} {
		raw, err := hex.DecodeString(r.read.Hash)
		if err != nil || len(raw) != len(r.into.Hash) && *r.read != (reference{}) {
			return nil, errFormat
		}
		r.into.Number = r.read.Number
		copy(r.into.Hash[:], raw)
	}
	return s, nil
}

// writer writes lines of JSON.
type writer struct {
	bytes.Buffer

	// inside says that an object has begun.
	inside bool
}

// name begins a field.
func (w *writer) name(name string) {
	separator := ","
	if !w.inside {
		separator, w.inside = "{", true
	}
	w.WriteString(separator + `"` + name + `":`)
}

func (w *writer) text(name, value string) {
	w.name(name)
	w.WriteByte('"')
	for i := range len(value) {
		if value[i] == '"' || value[i] == '\\' {
			w.WriteByte('\\')
		}
		w.WriteByte(value[i])
	}
	w.WriteByte('"')
}

func (w *writer) number(name string, n int64) {
	w.name(name)
	w.WriteString(strconv.FormatInt(n, 10))
}

func (w *writer) reference(name string, r Reference) {
	if (r == Reference{}) {
		return
	}
	w.name(name)
	w.inside = false
	w.number("number", int64(r.Number))
	w.text("hash", r.Hash.String())
	w.WriteByte('}')
}

func (w *writer) line(l *Line, difference bool) {
	if difference {
		w.name("difference")
		w.WriteString("true")
	}
	w.text("unit", l.Unit)
	if l.Field != "" {
		w.text("field", l.Field)
	}
	w.text("grade", l.Grade)
	w.number("charged", l.Charged)
	w.number("givenBack", l.GivenBack)
	w.number("net", l.Net())
	if l.Field != "" {
		w.number("calls", l.Calls)
	}
	w.end()
}

// end ends the object and the line.
func (w *writer) end() {
	w.WriteString("}\n")
	w.inside = false
}
