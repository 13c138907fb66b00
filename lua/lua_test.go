package lua_test

import (
	"crypto/sha1"
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/lua"
)

// split returns the comment at the head of a script file and the rest without comments.
func split(t *testing.T, file string) (header, body string) {
	t.Helper()
	text, err := os.ReadFile(file)
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

// parts are the files before a script that are part of it and are documented with it.
func parts(name string) []string {
	switch name {
	case "take":
		return []string{"clock", "quick"}
	default:
		return []string{"clock"}
	}
}

func TestHeadersDocumentEveryKeyAndArgument(t *testing.T) {
	t.Parallel()
	index := regexp.MustCompile(`(KEYS|ARGV)\[([^\]]*)\]`)
	for _, script := range lua.All() {
		header, body := split(t, script.Name+".lua")
		for _, part := range parts(script.Name) {
			_, before := split(t, part+".lua")
			body = before + body
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

func TestScriptsNameKeysOnlyFromTheirArguments(t *testing.T) {
	t.Parallel()
	first := regexp.MustCompile(`redis\.p?call\('[A-Z]+'(?:, ([^,)]+))?`)
	for _, file := range []string{"clock", "overrides", "quick", "state", "take", "settle", "grant", "peek", "renew", "override", "beat"} {
		_, body := split(t, file+".lua")
		for _, match := range first.FindAllStringSubmatch(body, -1) {
			if match[1] != "" && match[1] != "key" && match[1] != "owner.key" {
				require.Regexp(t, `^KEYS\[`, match[1], "%s: %s", file, match[0])
			}
		}
		require.NotContains(t, body, "tostring", "numbers lose digits there")
		require.NotContains(t, body, "redis.replicate_commands")
	}
}

func TestScriptsAreSentWithoutCommentsAndKnownByTheirSHA(t *testing.T) {
	t.Parallel()
	for _, script := range lua.All() {
		sum := sha1.Sum([]byte(script.Source))
		require.Equal(t, hex.EncodeToString(sum[:]), script.SHA)
		require.NotContains(t, script.Source, "--")
		require.Less(t, len(script.Source), 16<<10, script.Name)
	}
}

func TestWithTestClockReplacesNothingButTheClock(t *testing.T) {
	t.Parallel()
	for _, script := range lua.All() {
		replaced, err := lua.WithTestClock(script)
		require.NoError(t, err)
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
	_, err := lua.WithTestClock(lua.Script{Name: "none", Source: "return 1"})
	require.Error(t, err)
}
