package tiers

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Bounds of the keys of custom limits.
const (
	// maxKeyParts is how many parts a key has.
	maxKeyParts = 8
	// maxKey is the length in bytes of the longest key in its canonical spelling.
	maxKey = MaxLongName
)

// keyPart is one part of a key.
type keyPart struct{ name, value string }

// Key is the key of a custom limit, such as lang:en,tenant:acme: parts of a name and a value, which have to be equal to what a
// request carries, byte for byte. The zero value has no parts, which no key that was parsed has.
type Key struct{ parts []keyPart }

// ParseKey reads a key: 1 to 8 parts with commas between them, in any order, each of them a name of letters, digits, _, - and .,
// a colon and a value that is not empty. In a value % and a comma are written as %25 and %2C, and any byte may be written so.
// The canonical spelling ([Key.String]) has 256 bytes at most.
func ParseKey(text string) (Key, error) {
	if len(text) > 3*maxKey {
		return Key{}, fmt.Errorf("the key has %d bytes; at most %d fit", len(text), maxKey)
	}
	spelled := strings.Split(text, ",")
	if len(spelled) > maxKeyParts {
		return Key{}, fmt.Errorf("the key has %d parts; at most %d fit", len(spelled), maxKeyParts)
	}
	k := Key{parts: make([]keyPart, 0, len(spelled))}
	for _, part := range spelled {
		name, escaped, ok := strings.Cut(part, ":")
		if !ok || len(name) > maxName || !isWord(strings.ReplaceAll(name, ".", "_")) {
			return Key{}, fmt.Errorf("%s is no part of a key; a name, a colon and a value fit, such as lang:en", echo(part))
		}
		value, err := unescapeKey(escaped)
		if err != nil {
			return Key{}, err
		}
		if value == "" {
			return Key{}, fmt.Errorf("%s has no value; leave the part out where none is meant", echo(part))
		}
		k.parts = append(k.parts, keyPart{name, value})
	}
	slices.SortFunc(k.parts, func(a, b keyPart) int { return cmp.Compare(a.name, b.name) })
	for i := 1; i < len(k.parts); i++ {
		if k.parts[i].name == k.parts[i-1].name {
			return Key{}, fmt.Errorf("the key has %s twice, and a request has one of them at most", echo(k.parts[i].name))
		}
	}
	if n := len(k.String()); n > maxKey {
		return Key{}, fmt.Errorf("the key has %d bytes; at most %d fit", n, maxKey)
	}
	return k, nil
}

var errKeyEscape = errors.New("a % in a key stands before two hexadecimal digits, as in %2C for a comma and %25 for itself")

func unescapeKey(text string) (string, error) {
	if !strings.Contains(text, "%") {
		return text, nil
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '%' {
			b.WriteByte(text[i])
			continue
		}
		if i+2 >= len(text) {
			return "", errKeyEscape
		}
		hi, lo := strings.IndexByte(hexDigits, lower(text[i+1])), strings.IndexByte(hexDigits, lower(text[i+2]))
		if hi < 0 || lo < 0 {
			return "", errKeyEscape
		}
		b.WriteByte(byte(hi<<4 | lo))
		i += 2
	}
	return b.String(), nil
}

const hexDigits = "0123456789abcdef"

func lower(c byte) byte {
	if 'A' <= c && c <= 'F' {
		return c + 'a' - 'A'
	}
	return c
}

// appendKeyPart appends a part in the canonical spelling.
func appendKeyPart(b []byte, name, value string) []byte {
	if len(b) > 0 {
		b = append(b, ',')
	}
	b = append(append(b, name...), ':')
	for i := range len(value) {
		switch c := value[i]; c {
		case '%':
			b = append(b, "%25"...)
		case ',':
			b = append(b, "%2C"...)
		default:
			b = append(b, c)
		}
	}
	return b
}

// String returns the canonical spelling: the parts in the order of their names, with nothing escaped but % and commas. Two keys
// are the same if it is.
func (k Key) String() string {
	var b []byte
	for _, p := range k.parts {
		b = appendKeyPart(b, p.name, p.value)
	}
	return string(b)
}

// Names returns the names of the parts, sorted. The slice is the caller's own.
func (k Key) Names() []string {
	names := make([]string, len(k.parts))
	for i := range k.parts {
		names[i] = k.parts[i].name
	}
	return names
}

// Value returns the value of a part, empty if there is none of the name.
func (k Key) Value(name string) string {
	for _, p := range k.parts {
		if p.name == name {
			return p.value
		}
	}
	return ""
}

// Without returns the key without a part, with no parts if it has no other.
func (k Key) Without(name string) Key {
	return Key{parts: slices.DeleteFunc(slices.Clone(k.parts), func(p keyPart) bool { return p.name == name })}
}
