// Package lua holds the scripts that package bucket runs in Redis. A script is made of files: clock.lua stands before
// each, known_overrides.lua before each that override records change, state.lua, which describes the stored state,
// before each that reads one, count.lua where usage is counted, and claim.lua and fast.lua before take.lua. The header of a file says what it does, what
// its keys, arguments and reply are, which names it declares, and which it takes from the files before it. Names in
// capitals are those of internal/state, which are literals in the text that Redis gets.
//
// In production the scripts need Redis 6.2 or later, for the PXAT option of SET, or a server compatible
// with it, and its struct library. The text of the scripts is
// constant: nothing of a call is ever part of it.
package lua

import (
	"crypto/sha1" //nolint:gosec // Redis addresses scripts by SHA-1; nothing secret depends on it.
	"embed"
	"encoding/hex"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// Script is one script as it is sent to Redis.
type Script struct {
	// Name is that of its file, without the ending.
	Name string
	// Source is its whole text, without comments.
	Source string
	// SHA is the hexadecimal SHA-1 of Source, by which EVALSHA calls it.
	SHA string
	// Decide decides the same in Go.
	Decide func(state.Call) (state.Reply, error)
}

// Scripts are the scripts of a store.
type Scripts struct {
	// Take charges all owners or none, and claims an idempotency key.
	Take Script
	// Settle corrects a charge and ends a claim, once, or extends the lease of it.
	Settle Script
	// Adjust gives budget back, or reads what is spent where it gives nothing.
	Adjust Script
	// Override reads and changes the override records of a tenant.
	Override Script
	// Usage reads what was counted, and forgets it.
	Usage Script
	// Exchange gives parts of limits to a holder, and takes them back.
	Exchange Script
	// Heartbeat notes that an instance lives.
	Heartbeat Script
}

//go:embed *.lua
var files embed.FS

var scripts = Scripts{
	Take:      join(state.Take, "clock", "known_overrides", "count", "claim", "fast", "state", "take"),
	Settle:    join(state.Settle, "clock", "count", "state", "settle"),
	Adjust:    join(state.Adjust, "clock", "known_overrides", "state", "adjust"),
	Override:  join(state.Override, "clock", "override"),
	Usage:     join(state.Usage, "clock", "usage"),
	Exchange:  join(state.Exchange, "clock", "known_overrides", "state", "exchange"),
	Heartbeat: join(state.Heartbeat, "clock", "heartbeat"),
}

// Load returns the scripts.
func Load() Scripts { return scripts }

// All returns every script.
func (s *Scripts) All() []*Script {
	return []*Script{&s.Take, &s.Settle, &s.Adjust, &s.Override, &s.Usage, &s.Exchange, &s.Heartbeat}
}

// join makes the script of these files, the last of which has its name, and of what decides the same.
func join(decide func(state.Call) (state.Reply, error), names ...string) Script {
	var source strings.Builder
	for _, name := range names {
		// The files are embedded: a name that is none leaves a script that its test finds broken.
		text, _ := files.ReadFile(name + ".lua")
		for line := range strings.Lines(string(text)) {
			// A failover makes every caller send whole scripts: they go without their comments, and with short
			// names. No string in them spans lines.
			if code := strings.TrimSpace(line); code != "" && !strings.HasPrefix(code, "--") {
				source.WriteString(Expand(code))
				source.WriteByte('\n')
			}
		}
	}
	sum := sha1.Sum([]byte(source.String())) //nolint:gosec // See the import.
	return Script{Name: names[len(names)-1], Source: source.String(), SHA: hex.EncodeToString(sum[:]), Decide: decide}
}
