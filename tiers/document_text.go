package tiers

import "strings"

// stripIgnored returns a GraphQL document without what its meaning does not depend on (section 2.1.7 of the
// specification: blanks, line ends, commas, comments and a byte order mark), with one spelling of each block string. It
// is what stripIgnoredCharacters of graphql-js returns, so that a build in JavaScript computes the same ids. Of a text
// that is no GraphQL it returns something that depends on nothing but the text.
func stripIgnored(text string) string {
	var out strings.Builder
	out.Grow(len(text))
	// Two tokens that are no punctuators need something between them, and so does a spread after a number.
	word := false
	for at := 0; at < len(text); {
		end, kind := token(text, at)
		switch kind {
		case ignored:
		case punctuator:
			if word && strings.HasPrefix(text[at:end], "...") {
				out.WriteByte(' ')
			}
			out.WriteString(text[at:end])
			word = false
		default:
			if word {
				out.WriteByte(' ')
			}
			if kind == block {
				writeBlock(&out, text[at:end])
			} else {
				out.WriteString(text[at:end])
			}
			word = true
		}
		at = end
	}
	return out.String()
}

type tokenKind uint8

const (
	ignored tokenKind = iota
	punctuator
	// lexeme is a name, a number or a string.
	lexeme
	block
)

const (
	byteOrderMark = "\uFEFF"
	quotes        = `"""`
)

// token returns where the token ends that begins at a place, and its kind.
func token(text string, at int) (end int, kind tokenKind) {
	rest := text[at:]
	switch c := rest[0]; {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',':
		return at + 1, ignored
	case strings.HasPrefix(rest, byteOrderMark):
		return at + len(byteOrderMark), ignored
	case c == '#':
		if n := strings.IndexAny(rest, "\r\n"); n >= 0 {
			return at + n, ignored
		}
		return len(text), ignored
	case strings.HasPrefix(rest, quotes):
		return at + blockLength(rest), block
	case c == '"':
		return at + stringLength(rest), lexeme
	case strings.HasPrefix(rest, "..."):
		return at + len("..."), punctuator
	case isLetter(c) || c == '_':
		n := 1
		for n < len(rest) && (isLetter(rest[n]) || isDigit(rest[n]) || rest[n] == '_') {
			n++
		}
		return at + n, lexeme
	case isDigit(c) || c == '-':
		return at + numberLength(rest), lexeme
	default:
		return at + 1, punctuator
	}
}

// numberLength is that of the number which a text begins with, its sign, fraction and exponent included.
func numberLength(text string) int {
	n := 1
	for n < len(text) {
		switch c := text[n]; {
		case isDigit(c):
		case c == '.' && !strings.HasPrefix(text[n:], "..."):
		case c == 'e' || c == 'E':
		case (c == '+' || c == '-') && (text[n-1] == 'e' || text[n-1] == 'E'):
		default:
			return n
		}
		n++
	}
	return n
}

func stringLength(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		case '\r', '\n':
			// It is no string; what follows is read as tokens again.
			return i
		}
	}
	return len(text)
}

func blockLength(text string) int {
	for i := len(quotes); i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], `\`+quotes):
			i += len(quotes)
		case strings.HasPrefix(text[i:], quotes):
			return i + len(quotes)
		}
	}
	return len(text)
}

// writeBlock writes a block string in the shortest spelling of its value (section 2.9.4 of the specification).
func writeBlock(out *strings.Builder, spelled string) {
	inner := strings.TrimSuffix(strings.TrimPrefix(spelled, quotes), quotes)
	lines := blockLines(strings.ReplaceAll(inner, `\`+quotes, quotes))
	value := strings.ReplaceAll(strings.Join(lines, "\n"), quotes, `\`+quotes)
	out.WriteString(quotes)
	if len(lines) > 1 && !hasText(lines[1:]) {
		out.WriteByte('\n')
	}
	out.WriteString(value)
	if strings.HasSuffix(value, `"`) && !strings.HasSuffix(value, `\`+quotes) || strings.HasSuffix(value, `\`) {
		out.WriteByte('\n')
	}
	out.WriteString(quotes)
}

// hasText reports whether one of the lines begins with something else than a blank.
func hasText(lines []string) bool {
	for _, line := range lines {
		if line != "" && line[0] != ' ' && line[0] != '\t' {
			return true
		}
	}
	return false
}

// blockLines are the lines of the value: without their common indentation, and without empty ones around them.
func blockLines(inner string) []string {
	lines := strings.Split(strings.ReplaceAll(strings.ReplaceAll(inner, "\r\n", "\n"), "\r", "\n"), "\n")
	common, first, last := -1, 0, -1
	for i, line := range lines {
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		if indent == len(line) {
			continue
		}
		if last < 0 {
			first = i
		}
		last = i
		if i > 0 && (common < 0 || indent < common) {
			common = indent
		}
	}
	if last < 0 {
		return nil
	}
	for i := 1; i < len(lines) && common > 0; i++ {
		lines[i] = lines[i][min(common, len(lines[i])):]
	}
	return lines[first : last+1]
}
