package digest

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/internal/pseudonym"
)

// None is the value of a number for none at all, where a field says so. Zero is always the default, and any other
// negative number is a mistake.
const None = -1

// Config says how much a [Collector] keeps. The zero value is the default in each field. Every mistake in it is reported, all at
// once, by [New].
type Config struct {
	// Users says how names of users are written. Zero means [Hashed].
	Users Names
	// Key makes hashes of names that nobody else can make, 16 to 64 random bytes, the same in each instance of a fleet. Without one
	// whoever reads a digest can try names, and a client that chooses its own name can choose to be counted: set one where you hash
	// names for secrecy, or halt by the shares of users.
	Key []byte

	// Parameters says how the values are written that custom limits go by. They are what clients send, and may be secrets: zero means [Hashed], by which a
	// replay finds out which key of a policy each of them is, and nobody else reads what is no word that can be guessed; a Key makes guessing useless. [Omitted]
	// has custom limits not judged by replays. [Plain] is a mistake.
	Parameters Names

	// Tenants is how many tenants are counted by name in a second, at most 65 536. Each takes some 300 bytes, and those of the last minute
	// are remembered seven times. Zero means 2048.
	Tenants int
	// Top is how many tenants a digest has by each of four counts, at most 128. Zero means 32.
	Top int
	// Refusals is how many refusals are kept to be found by their id, at most 4096, of 2 KiB or so each, 8 at most. Where there is no
	// room, the oldest of the tenant that has most of them makes it. Zero means 256, [None] means none.
	Refusals int
	// Records is how many records are made in a second, at most 1024. Where there is more to record, that of fewer tenants is. Zero
	// means 64, [None] means none.
	Records int
}

// Defaults and bounds of a [Config].
const (
	defaultTenants  = 2048
	defaultTop      = 32
	defaultRefusals = 256
	defaultRecords  = 64
	maxTenants      = 1 << 16
	maxTop          = 128
	maxRefusals     = 4096
	maxRecords      = 1024
)

func (c Config) withDefaults() Config {
	c.Tenants = cmp.Or(c.Tenants, defaultTenants)
	c.Top = cmp.Or(c.Top, defaultTop)
	c.Refusals = cmp.Or(c.Refusals, defaultRefusals)
	c.Records = cmp.Or(c.Records, defaultRecords)
	return c
}

// validate returns every mistake at once. Defaults have been filled in.
func (c *Config) validate() error {
	var errs []error
	within := func(name string, n, most int, none bool) {
		if n > most || n < 1 && (!none || n != None) {
			what := ""
			if none {
				what = ", or None"
			}
			errs = append(errs, fmt.Errorf("digest: Config.%s is %d: write 1 to %d, 0 for the default%s", name, n, most, what))
		}
	}
	within("Tenants", c.Tenants, maxTenants, false)
	within("Top", c.Top, maxTop, false)
	within("Refusals", c.Refusals, maxRefusals, true)
	within("Records", c.Records, maxRecords, true)
	if c.Users > Omitted {
		errs = append(errs, fmt.Errorf("digest: Config.Users is %d: write Hashed, Plain or Omitted", c.Users))
	}
	if c.Parameters != Hashed && c.Parameters != Omitted {
		errs = append(errs, fmt.Errorf("digest: Config.Parameters is %d: write Hashed or Omitted", c.Parameters))
	}
	return errors.Join(append(errs, pseudonym.CheckKey("digest: Config.Key", c.Key))...)
}
