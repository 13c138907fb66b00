package source

import (
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
)

// maxNesting is how deep braces, brackets and parentheses may nest. The parser recurses, and a stack that
// overflows ends the process without a word.
const maxNesting = 1_000

// tooDeep returns a [cli.FileError] if a document nests too deeply. It reads strings and comments as the
// parser does; what it misjudges behind a syntax error the parser never reaches.
func tooDeep(file, text string) error {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[', '(':
			depth++
			if depth > maxNesting {
				return &cli.FileError{File: file, Line: 1 + strings.Count(text[:i], "\n"), Message: "the document nests more than 1000 levels deep"}
			}
		case '}', ']', ')':
			depth--
		case '#':
			for i+1 < len(text) && text[i+1] != '\n' && text[i+1] != '\r' {
				i++
			}
		case '"':
			i = endOfString(text, i)
		}
	}
	return nil
}

// endOfString returns the index of the last byte of the string that begins at i.
func endOfString(text string, i int) int {
	if strings.HasPrefix(text[i:], `"""`) {
		for i += 3; i < len(text); i++ {
			switch {
			case strings.HasPrefix(text[i:], `\"""`):
				i += 3
			case strings.HasPrefix(text[i:], `"""`):
				return i + 2
			}
		}
		return i
	}
	for i++; i < len(text) && text[i] != '"' && text[i] != '\n' && text[i] != '\r'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}
