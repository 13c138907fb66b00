package lua

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// theirs are the words of Lua and of Redis. All others in the code of the scripts, that are not in capitals, are ours.
const theirs = ` and break do else elseif end false for function if in local nil not or repeat return then true until while
 os io redis call struct unpack pack string byte rep sub math floor sqrt fmod frexp max min table concat error type pcall _ `

var word = regexp.MustCompile(`'[^']*'|--.*|[A-Za-z_][A-Za-z0-9_]*`)

// short has a name of two letters for each word of ours that is longer.
var short = shorten()

func shorten() map[string]string {
	words := map[string]bool{}
	for w := range strings.FieldsSeq(theirs) {
		words[w] = false
	}
	// The files are embedded: there is nothing that cannot be read.
	all, _ := files.ReadDir(".")
	for _, file := range all {
		text, _ := files.ReadFile(file.Name())
		for _, w := range word.FindAllString(string(text), -1) {
			if _, known := words[w]; !known && w[0] != '\'' && w[0] != '-' {
				words[w] = len(w) > 2 && w != strings.ToUpper(w)
			}
		}
	}
	names, next := map[string]string{}, 0
	for _, w := range slices.Sorted(maps.Keys(words)) {
		for words[w] && names[w] == "" {
			name := string([]byte{'a' + byte(next/letters%letters), 'a' + byte(next%letters)})
			if _, taken := words[name]; !taken && next < letters*letters {
				names[w] = name
			} else if next >= letters*letters {
				break
			}
			next++
		}
	}
	return names
}

const letters = 'z' - 'a' + 1

// Expand is a line of a script as Redis gets it: numbers and formats stand in the place of their names, and all other names of
// ours are short.
func Expand(code string) string {
	return word.ReplaceAllStringFunc(state.Expand(code), func(w string) string {
		if name, ok := short[w]; ok {
			return name
		}
		return w
	})
}
