package cost

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// scanner reads JSON in one forward pass, without allocating and without keeping anything. It accepts
// what encoding/json accepts, down to the depth of nesting. A method that returns false has met what is
// no JSON, at the position at; the scanner is of no use after that.
type scanner struct {
	data  []byte
	at    int
	depth int
}

// peek returns the first byte that is no space, 0 at the end.
func (s *scanner) peek() byte {
	for s.at < len(s.data) {
		c := s.data[s.at]
		if c > ' ' || c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
		s.at++
	}
	return 0
}

// take reads the byte if it is the next one.
func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.at++
	return true
}

// end says that nothing but space is left.
func (s *scanner) end() bool { return s.peek() == 0 && s.at == len(s.data) }

// enter reads the opening bracket of an object or array.
func (s *scanner) enter(bracket byte) bool {
	s.depth++
	return s.depth <= maxDepth && s.take(bracket)
}

// more reads what stands before the next element: nothing before the first, else a comma. At the
// closing bracket it reads that and says that there is no more.
func (s *scanner) more(first bool, closing byte) (more, ok bool) {
	switch c := s.peek(); {
	case c == closing:
		s.at++
		s.depth--
		return false, true
	case first:
		return true, true
	case c == ',':
		s.at++
		return true, true
	default:
		return false, false
	}
}

// key reads a key and the colon behind it. It returns the key as it is spelled; GraphQL names need no
// escapes.
func (s *scanner) key() (key []byte, ok bool) {
	if key, ok = s.text(); !ok {
		return nil, false
	}
	return key, s.take(':')
}

// text reads a string and returns it as it is spelled.
func (s *scanner) text() (spelled []byte, ok bool) {
	if !s.take('"') {
		return nil, false
	}
	data, at := s.data, s.at
	for {
		at += plain(data[at:])
		if at == len(data) || data[at] < ' ' {
			s.at = at
			return nil, false
		}
		if data[at] == '"' {
			spelled, s.at = data[s.at:at], at+1
			return spelled, true
		}
		n := escape(data[at:])
		if n == 0 {
			s.at = at
			return nil, false
		}
		at += n
	}
}

// plain returns how many bytes stand for themselves in a string: all up to a quotation mark, a
// backslash or a control character. It looks at eight bytes at once.
func plain(data []byte) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	at := 0
	for ; len(data)-at >= 8; at += 8 {
		word := binary.LittleEndian.Uint64(data[at:])
		quotes, slashes := word^(ones*'"'), word^(ones*'\\')
		// A byte of such a difference has its top bit set if it was below what is subtracted; a borrow can
		// only set those of later bytes, and the first one is what is asked for.
		special := ((quotes-ones)&^quotes | (slashes-ones)&^slashes | (word-ones*' ')&^word) & tops
		if special != 0 {
			return at + bits.TrailingZeros64(special)/8
		}
	}
	for ; at < len(data); at++ {
		if c := data[at]; c < ' ' || c == '"' || c == '\\' {
			break
		}
	}
	return at
}

// escape returns the length of the escape sequence that the data begins with, 0 if it is none.
func escape(data []byte) int {
	if len(data) < 2 {
		return 0
	}
	if data[1] != 'u' {
		if bytes.IndexByte([]byte(`"\/bfnrt`), data[1]) < 0 {
			return 0
		}
		return 2
	}
	if len(data) < 6 {
		return 0
	}
	for _, c := range data[2:6] {
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
			return 0
		}
	}
	return 6
}

// skip reads a value of any kind.
func (s *scanner) skip() bool {
	switch c := s.peek(); c {
	case '"':
		_, ok := s.text()
		return ok
	case '{', '[':
		return s.skipNested(c)
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

func (s *scanner) skipNested(bracket byte) bool {
	if !s.enter(bracket) {
		return false
	}
	closing := bracket + 2 // '[' and ']', '{' and '}' are two apart.
	for first := true; ; first = false {
		more, ok := s.more(first, closing)
		if !more {
			return ok
		}
		if bracket == '{' {
			if _, ok := s.key(); !ok {
				return false
			}
		}
		if !s.skip() {
			return false
		}
	}
}

func (s *scanner) word(word string) bool {
	if !bytes.HasPrefix(s.data[s.at:], []byte(word)) {
		return false
	}
	s.at += len(word)
	return true
}

func (s *scanner) number() bool {
	if s.at < len(s.data) && s.data[s.at] == '-' {
		s.at++
	}
	if s.at < len(s.data) && s.data[s.at] == '0' {
		s.at++
	} else if !s.digits() {
		return false
	}
	if s.at < len(s.data) && s.data[s.at] == '.' {
		s.at++
		if !s.digits() {
			return false
		}
	}
	if s.at < len(s.data) && s.data[s.at]|0x20 == 'e' {
		s.at++
		if s.at < len(s.data) && (s.data[s.at] == '+' || s.data[s.at] == '-') {
			s.at++
		}
		return s.digits()
	}
	return true
}

func (s *scanner) digits() bool {
	before := s.at
	for s.at < len(s.data) && '0' <= s.data[s.at] && s.data[s.at] <= '9' {
		s.at++
	}
	return s.at > before
}
