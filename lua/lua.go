// Package lua holds the scripts that package bucket runs in Redis, one file each. The header of a
// file says what the script does and what its keys, arguments and reply are. clock.lua stands before each
// script, overrides.lua before each that override records change, state.lua, which describes the stored
// state, before each that reads one, and quick.lua before take.lua, whose usual case it is.
//
// In production the scripts need Redis 6.2 or later, for the PXAT option of SET, or a server compatible
// with it, and its struct library. The text of the scripts is
// constant: nothing of a call is ever part of it.
package lua

import (
	"crypto/sha1" //nolint:gosec // Redis addresses scripts by SHA-1; nothing secret depends on it.
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"
)

// Script is one script as it is sent to Redis.
type Script struct {
	// Name is that of its file, without the ending.
	Name string
	// Source is its whole text, without comments.
	Source string
	// SHA is the hexadecimal SHA-1 of Source, by which EVALSHA calls it.
	SHA string
}

//go:embed clock.lua
var clock string

//go:embed overrides.lua
var overrides string

//go:embed quick.lua
var quick string

//go:embed state.lua
var state string

//go:embed take.lua
var take string

//go:embed settle.lua
var settle string

//go:embed grant.lua
var grant string

//go:embed peek.lua
var peek string

//go:embed renew.lua
var renew string

//go:embed override.lua
var override string

//go:embed beat.lua
var beat string

// The scripts.
var (
	// Take charges all owners or none, and claims an idempotency key.
	Take = newScript("take", clock+overrides+quick+state+take)
	// Settle corrects a charge and ends a claim, once.
	Settle = newScript("settle", clock+state+settle)
	// Grant gives budget back.
	Grant = newScript("grant", clock+overrides+state+grant)
	// Peek reads the debts.
	Peek = newScript("peek", clock+overrides+state+peek)
	// Renew extends the lease of a claim.
	Renew = newScript("renew", clock+renew)
	// Override reads and changes the override records of a tenant.
	Override = newScript("override", clock+override)
	// Beat notes that an instance lives.
	Beat = newScript("beat", clock+beat)
)

// All returns every script.
func All() []Script {
	return []Script{Take, Settle, Grant, Peek, Renew, Override, Beat}
}

func newScript(name, text string) Script {
	var source strings.Builder
	for line := range strings.Lines(text) {
		// A failover makes every caller send whole scripts: they go without their comments. No string
		// in them spans lines.
		if code := strings.TrimSpace(line); code != "" && !strings.HasPrefix(code, "--") {
			source.WriteString(code)
			source.WriteByte('\n')
		}
	}
	sum := sha1.Sum([]byte(source.String())) //nolint:gosec // See the import.
	return Script{Name: name, Source: source.String(), SHA: hex.EncodeToString(sum[:])}
}

// The place where a script reads the clock, and what stands there in a test.
const (
	readsClock     = "local clock = redis.call('TIME')"
	readsTestClock = "local clock = {math.floor(ARGV[#ARGV] / 1000), ARGV[#ARGV] % 1000 * 1000}"
)

// WithTestClock returns the script with its clock replaced: it takes the time, in Unix milliseconds,
// from one more argument after all others. The rest of the text is the same. It is for tests, in
// which the time of Redis cannot be set.
func WithTestClock(script Script) (Script, error) {
	if strings.Count(script.Source, readsClock) != 1 {
		return Script{}, fmt.Errorf("lua: script %s does not read the clock where it is expected", script.Name)
	}
	return newScript(script.Name, strings.Replace(script.Source, readsClock, readsTestClock, 1)), nil
}
