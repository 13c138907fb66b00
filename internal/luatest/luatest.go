// Package luatest changes the scripts of package lua for tests.
package luatest

import (
	"crypto/sha1" //nolint:gosec // Redis addresses scripts by SHA-1.
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"github.com/gqlgen-ratelimit/ratelimit/lua"
)

// Replace puts a text into the place of another one, of which there has to be one in the script. Both may have the
// names that the files of the scripts have.
func Replace(script *lua.Script, old, changed string) error {
	old = expand(old)
	if strings.Count(script.Source, old) != 1 {
		return fmt.Errorf("luatest: %q is not once in %s", old, script.Name)
	}
	script.Source = strings.Replace(script.Source, old, expand(changed), 1)
	sum := sha1.Sum([]byte(script.Source)) //nolint:gosec // See the import.
	script.SHA = hex.EncodeToString(sum[:])
	return nil
}

// expanded are the texts that were expanded before: a thousand stores of a test have the same clock.
var expanded = struct {
	sync.Mutex
	texts map[string]string
}{texts: map[string]string{}}

func expand(code string) string {
	expanded.Lock()
	defer expanded.Unlock()
	text, known := expanded.texts[code]
	if !known {
		text = lua.Expand(code)
		expanded.texts[code] = text
	}
	return text
}

// SetClock replaces the clock of the script: it takes the time, in Unix milliseconds, from one more argument after
// all others. The rest of the text is the same.
func SetClock(script *lua.Script) error {
	return Replace(script, "local clock = redis.call('TIME')",
		"local clock = {math.floor(ARGV[#ARGV] / 1000), ARGV[#ARGV] % 1000 * 1000}")
}
