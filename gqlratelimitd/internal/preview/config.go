package preview

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Bounds of a preview.
const (
	// DefaultOperations is how many operations and tenants are held at once, some 100 MB at the most.
	DefaultOperations = 500_000
	// MaxOperations is how many can be asked for.
	MaxOperations = 5_000_000
	// DefaultRows is how many tenants a report has, and MaxRows how many it can have.
	DefaultRows = 100
	MaxRows     = 10_000
)

// Config says what is compared. The zero value of each field but Before and After is the default.
type Config struct {
	// Before is the policy that holds, and After the one that may. Both are required.
	Before, After *tiers.Snapshot
	// Record returns what the directory knows of a tenant, nil for nothing. It holds under both policies. Nil knows of nobody.
	Record func(tenant string) *tiers.Record
	// Overrides are those that hold now. They hold under both policies, for as long as the records reach.
	Overrides []Override
	// Key is that of the digests, by which instances agree on whose operations they record.
	Key []byte
	// Enforced has what is in mode shadow and warn count as enforced in After: what its next stage would refuse.
	Enforced bool
	// Operations is how many are held at once. With more, fewer tenants are judged. Zero means DefaultOperations.
	Operations int
	// Rows is how many tenants the report names. Zero means DefaultRows.
	Rows int
}

// Override is an override of a tenant.
type Override struct {
	Tenant   string
	Override bucket.Override
}

func (c *Config) check() error {
	var mistakes []error
	if c.Before == nil || c.After == nil {
		mistakes = append(mistakes, errors.New("preview: Config.Before and Config.After are required"))
	}
	if c.Operations < 0 || c.Operations > MaxOperations {
		mistakes = append(mistakes, fmt.Errorf("preview: Config.Operations is %d; 0 is the default, and at most %d fit", c.Operations, MaxOperations))
	}
	if c.Rows < 0 || c.Rows > MaxRows {
		mistakes = append(mistakes, fmt.Errorf("preview: Config.Rows is %d; 0 is the default, and at most %d fit", c.Rows, MaxRows))
	}
	c.Operations, c.Rows = cmp.Or(c.Operations, DefaultOperations), cmp.Or(c.Rows, DefaultRows)
	return errors.Join(mistakes...)
}
