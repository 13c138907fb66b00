package lua_test

import (
	"crypto/sha1"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/luatest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
	"github.com/gqlgen-ratelimit/ratelimit/lua"
)

// split returns the comment at the head of a script file and the rest without comments.
func split(t *testing.T, name string) (header, body string) {
	t.Helper()
	text, err := os.ReadFile(name + ".lua")
	require.NoError(t, err)
	var head, rest strings.Builder
	inHead := true
	for line := range strings.Lines(string(text)) {
		comment := strings.HasPrefix(strings.TrimSpace(line), "--")
		inHead = inHead && comment
		switch {
		case inHead:
			head.WriteString(line)
		case !comment:
			rest.WriteString(line)
		}
	}
	return head.String(), rest.String()
}

// names returns the names of the files, in an order in which each stands after those that it may take from.
func names(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("*.lua")
	require.NoError(t, err)
	inOrder := []string{"clock", "known_overrides", "count", "claim", "fast", "state", "take", "settle", "adjust", "override", "usage", "exchange", "heartbeat"}
	require.Len(t, found, len(inOrder))
	return inOrder
}

// before returns the files that stand before one in its scripts.
func before(name string) []string {
	switch name {
	case "clock":
		return nil
	case "known_overrides", "state", "override", "heartbeat", "count", "usage":
		return []string{"clock"}
	case "settle":
		return []string{"clock", "count", "state"}
	case "claim":
		return []string{"clock", "known_overrides", "count"}
	case "fast":
		return []string{"clock", "known_overrides", "count", "claim"}
	case "take":
		return []string{"clock", "known_overrides", "count", "claim", "fast", "state"}
	default:
		return []string{"clock", "known_overrides", "state"}
	}
}

func scripts() []*lua.Script {
	all := lua.Load()
	return all.All()
}

func TestScriptsAreTheFilesInTheirOrder(t *testing.T) {
	t.Parallel()
	for _, script := range scripts() {
		var source strings.Builder
		for _, part := range append(before(script.Name), script.Name) {
			_, body := split(t, part)
			for line := range strings.Lines(body) {
				if code := strings.TrimSpace(line); code != "" {
					source.WriteString(lua.Expand(code) + "\n")
				}
			}
		}
		require.Equal(t, source.String(), script.Source, script.Name)
	}
}

func TestHeadersDocumentEveryKeyAndArgument(t *testing.T) {
	t.Parallel()
	index := regexp.MustCompile(`(KEYS|ARGV)\[([^\]]*)\]`)
	for _, script := range scripts() {
		header, body := split(t, script.Name)
		for _, part := range before(script.Name) {
			if part != "state" && part != "known_overrides" && part != "count" {
				_, before := split(t, part)
				body = before + body
			}
		}
		for _, section := range []string{"-- " + script.Name + ".lua: ", "-- KEYS", "-- ARGV:", "-- Reply", "-- Expiry:"} {
			require.Contains(t, header, section, script.Name)
		}
		used := map[string]bool{}
		for _, match := range index.FindAllString(body, -1) {
			used[match] = true
			require.Contains(t, header, "--   "+match+" ", "%s uses %s, which its header does not document", script.Name, match)
		}
		for _, line := range strings.Split(header, "\n") {
			if documented := index.FindString(line); strings.HasPrefix(line, "--   "+documented) && documented != "" {
				require.True(t, used[documented], "%s documents %s, which it does not use", script.Name, documented)
			}
		}
		require.NotRegexp(t, `\bARGV\b[^\[]`, strings.ReplaceAll(body, "#ARGV[", "ARGV["), "only single arguments are used")
	}
}

// listed returns the names that a header lists.
func listed(t *testing.T, header, word string) []string {
	t.Helper()
	match := regexp.MustCompile(`(?s)-- ` + word + `: (.*?)\n(?:-- [A-Z]|--?\n|$)`).FindStringSubmatch(header)
	require.NotNil(t, match, "%s: in %s", word, header)
	if match[1] == "nothing" {
		return nil
	}
	all := regexp.MustCompile(`[\s,-]+`).Split(strings.TrimSpace(match[1]), -1)
	slices.Sort(all)
	return all
}

var (
	declares = regexp.MustCompile(`(?m)^local (?:function )?([a-z_0-9, ]+)`)
	inside   = regexp.MustCompile(`(?m)(?:^\s+local (?:function )?|^.*\bfor )([a-z_0-9, ]+)|function [a-z_]*\(([a-z_0-9, ]*)\)`)
	comma    = regexp.MustCompile(`\s*,\s*`)
)

// found returns the names in the groups of all matches.
func found(expression *regexp.Regexp, body string) []string {
	var all []string
	for _, match := range expression.FindAllStringSubmatch(body, -1) {
		for _, group := range match[1:] {
			if group = strings.TrimSpace(group); group != "" {
				all = append(all, comma.Split(group, -1)...)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// uses returns the names in the code that are neither fields nor keys of a table.
func uses(body string) map[string]bool {
	used := map[string]bool{}
	token := regexp.MustCompile(`'[^']*'|[.]?[A-Za-z_][A-Za-z0-9_]*(\s*=[^=])?|[{}]`)
	depth := 0
	for _, word := range token.FindAllString(body, -1) {
		name := strings.TrimRight(strings.TrimSuffix(word, word[len(word)-1:]), "= ")
		switch {
		case word == "{":
			depth++
		case word == "}":
			depth--
		case word[0] == '.' || word[0] == '\'':
		case !strings.Contains(word, "="):
			used[word] = true
		case depth == 0:
			used[name] = true
		}
	}
	return used
}

func TestHeadersSayWhatAFileDeclaresAndTakes(t *testing.T) {
	t.Parallel()
	declared := map[string][]string{}
	for _, name := range names(t) {
		header, body := split(t, name)
		declared[name] = found(declares, body)
		require.Equal(t, declared[name], listed(t, header, "Declares"), "what %s declares", name)
		used, hidden := uses(body), found(inside, body)
		var takes []string
		for _, part := range before(name) {
			for _, other := range declared[part] {
				if used[other] && !slices.Contains(declared[name], other) {
					takes = append(takes, other)
					require.NotContains(t, hidden, other, "%s hides what it takes", name)
				}
			}
		}
		slices.Sort(takes)
		require.Equal(t, slices.Compact(takes), listed(t, header, "Takes"), "what %s takes", name)
	}
}

func TestNamesInCapitalsAreThoseOfTheWireAndAllAreUsed(t *testing.T) {
	t.Parallel()
	capitals, all := regexp.MustCompile(`'[^']*'|\b[A-Z][A-Z_0-9]+\b`), ""
	for _, script := range scripts() {
		for _, name := range capitals.FindAllString(script.Source, -1) {
			require.Contains(t, []string{"KEYS", "ARGV"}, regexp.MustCompile(`^'.*'$`).ReplaceAllString(name, "KEYS"), "%s has no such name", script.Name)
		}
	}
	for _, name := range names(t) {
		_, body := split(t, name)
		all += body
	}
	for _, name := range state.Names() {
		require.Regexp(t, `\b`+name+`\b`, all, "no script uses it")
	}
}

func TestScriptsNameKeysOnlyFromTheirArguments(t *testing.T) {
	t.Parallel()
	first := regexp.MustCompile(`redis\.p?call\('[A-Z]+'(?:, ([^,)]+))?`)
	for _, name := range names(t) {
		_, body := split(t, name)
		for _, match := range first.FindAllStringSubmatch(body, -1) {
			if match[1] != "" && match[1] != "key" && match[1] != "owner.key" {
				require.Regexp(t, `^KEYS\[`, match[1], "%s: %s", name, match[0])
			}
		}
		require.NotContains(t, body, "tostring", "numbers lose digits there")
		require.NotContains(t, body, "redis.replicate_commands")
	}
}

func TestScriptsAreSentWithoutCommentsAndKnownByTheirSHA(t *testing.T) {
	t.Parallel()
	for _, script := range scripts() {
		sum := sha1.Sum([]byte(script.Source))
		require.Equal(t, hex.EncodeToString(sum[:]), script.SHA)
		require.NotContains(t, script.Source, "--")
		require.Less(t, len(script.Source), 18<<10, script.Name)
	}
}

func TestATestClockReplacesNothingButTheClock(t *testing.T) {
	t.Parallel()
	for _, script := range scripts() {
		replaced := *script
		require.NoError(t, luatest.SetClock(&replaced))
		require.NotEqual(t, script.SHA, replaced.SHA)
		was, is := strings.Split(script.Source, "\n"), strings.Split(replaced.Source, "\n")
		require.Len(t, is, len(was))
		changed := 0
		for i := range was {
			if was[i] != is[i] {
				changed++
			}
		}
		require.Equal(t, 1, changed, "the line that reads the time")
	}
	require.Error(t, luatest.SetClock(&lua.Script{Name: "none", Source: "return 1"}))
}
