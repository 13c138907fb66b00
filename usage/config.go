package usage

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/digest"
	"github.com/gqlgen-ratelimit/ratelimit/internal/pseudonym"
)

// None is the value of a number for none at all, where a field says so. Zero is always the default, and any other
// negative number is a mistake.
const None = -1

// RecorderConfig says how much a [Recorder] keeps. The zero value is the default in each field. Every mistake in it is reported, all at
// once, by [NewRecorder].
type RecorderConfig struct {
	// Users says how names of users are written. Zero means digest.Hashed, by which digest.HashUser finds a user who is known.
	Users digest.Names
	// Key makes hashes of names that nobody else can make: that of digest.Config, the same in each instance of a fleet.
	Key []byte
	// Store is the name of the store that tells of its counts, empty for the default one. Each store of a server has a recorder of its own, and
	// those but one have no Tenants.
	Store string

	// Tenants is of how many tenants decisions are counted by name, in a minute, at most 65 536. Zero means 2048, and [None] that
	// decisions are not counted.
	Tenants int
	// Names is how many names a tenant has in a minute, in all dimensions together, of which each has an eighth for itself, at most 256. Zero
	// means 128.
	Names int
	// Rows is how many names of all tenants and minutes there are at most that nobody has stored, 1000 to 1 000 000, of some 200 bytes each. Zero
	// means 100 000: where there is no room for more, the oldest minute is lost.
	Rows int
	// Counted is how many tenants wait to be told as counted, at most 1 000 000, of some 200 bytes each. Zero means 100 000.
	Counted int
}

// Defaults and bounds of a [RecorderConfig].
const (
	defaultTenants = 2048
	maxTenants     = 1 << 16
	defaultNames   = 128
	maxNames       = 256
	defaultRows    = 100_000
	minRows        = 1000
	maxRows        = 1_000_000
	defaultCounted = 100_000
	maxCounted     = 1_000_000
)

func (c RecorderConfig) withDefaults() RecorderConfig {
	c.Tenants = cmp.Or(c.Tenants, defaultTenants)
	c.Names = cmp.Or(c.Names, defaultNames)
	c.Rows = cmp.Or(c.Rows, defaultRows)
	c.Counted = cmp.Or(c.Counted, defaultCounted)
	return c
}

// validate returns every mistake at once. Defaults have been filled in.
func (c *RecorderConfig) validate() error {
	var errs []error
	within := func(name string, n, least, most int, none string) {
		if n < least || n > most {
			errs = append(errs, fmt.Errorf("usage: RecorderConfig.%s is %d: write %d to %d, 0 for the default%s", name, n, least, most, none))
		}
	}
	if c.Tenants != None {
		within("Tenants", c.Tenants, 1, maxTenants, ", or None")
	}
	within("Names", c.Names, 1, maxNames, "")
	within("Rows", c.Rows, minRows, maxRows, "")
	within("Counted", c.Counted, 1, maxCounted, "")
	if c.Users > digest.Omitted {
		errs = append(errs, fmt.Errorf("usage: RecorderConfig.Users is %d: write digest.Hashed, Plain or Omitted", c.Users))
	}
	return errors.Join(append(errs, pseudonym.CheckKey("usage: RecorderConfig.Key", c.Key))...)
}
