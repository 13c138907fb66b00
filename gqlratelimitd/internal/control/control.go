package control

import (
	"cmp"
	"crypto/ed25519"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/relay"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Config says how a control plane works. The zero value of each field but Store is the default.
type Config struct {
	// Store is where everything is kept. It is required.
	Store *store.DB
	// Parse is how documents are read: as in the instances, or they refuse what was published.
	Parse tiers.ParseConfig
	// Keys are those that sign revisions. If there are any, a revision that none of them has signed is not published. A key that
	// is not of ed25519.PublicKeySize bytes is a mistake.
	Keys []ed25519.PublicKey
	// Instances says what instances say of themselves, and Relay how far changes have come. Nil is a daemon without a Redis. What Relay
	// returns is the caller's.
	Instances Instances
	Relay     func() relay.Status
	// Modes are the mode switches of the instances. Nil is a daemon without a Redis: what changes them is [ErrNoRedis].
	Modes *redisswitch.Switches
	// Budgets is the store of budgets of the instances, which [Control.Usage] reads. Nil is none.
	Budgets Budgets
	// Webhooks is what endpoints of tenants take. Nil is a daemon without them: what is about them is [ErrNoRedis].
	Webhooks *WebhookConfig
	// Changed is called after each change that somebody has to hear of: the outbox has something. It does not block. Nil calls
	// nothing.
	Changed func()
	// Now is the clock, that of the store. Nil means time.Now.
	Now func() time.Time
}

// Control does what the control plane does. It is made by [New], starts nothing, and is safe for concurrent use.
type Control struct {
	cfg Config
	// newest is the policy that was compiled last.
	newest atomic.Pointer[compiled]
	fleet  fleetCache
	// compiles is for documents that are to hold or do, and checks for those that are only looked at: who may look at many keeps
	// nobody from publishing.
	compiles, checks turn
	// exports is for what reads much usage.
	exports turn
	// mostExported is how many rows an export has at most.
	mostExported int
}

// New returns a control plane on a store. The error has everything that is wrong with the configuration.
func New(cfg Config) (*Control, error) {
	var mistakes []error
	if cfg.Store == nil {
		mistakes = append(mistakes, errors.New("control: Config.Store is nil"))
	}
	if cfg.Parse.MaxDocument < 0 || cfg.Parse.MaxDocument > tiers.MaxDocument {
		mistakes = append(mistakes, fmt.Errorf("control: Config.Parse.MaxDocument is %d; 0 is the default, and at most %d fit", cfg.Parse.MaxDocument, tiers.MaxDocument))
	}
	for i, key := range cfg.Keys {
		if len(key) != ed25519.PublicKeySize {
			mistakes = append(mistakes, fmt.Errorf("control: Config.Keys[%d] has %d bytes, want %d", i, len(key), ed25519.PublicKeySize))
		}
	}
	if w := cfg.Webhooks; w != nil && (w.Box == nil || w.CheckURL == nil || w.Changed == nil) {
		mistakes = append(mistakes, errors.New("control: Config.Webhooks: set Box, CheckURL and Changed"))
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, err
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	cfg.Parse.MaxDocument = cmp.Or(cfg.Parse.MaxDocument, tiers.DefaultMaxDocument)
	return &Control{
		cfg: cfg, fleet: fleetCache{asking: make(chan struct{}, 1)},
		compiles: newTurn(), checks: newTurn(), exports: newTurn(), mostExported: MaxUsageExport,
	}, nil
}

// now is the time to the microsecond, as it is stored.
func (c *Control) now() time.Time { return c.cfg.Now().UTC().Truncate(time.Microsecond) }
