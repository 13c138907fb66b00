package placement

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/doctor"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
)

// RedisConfig says how a Redis is opened and examined. The zero value is the default in each field.
type RedisConfig struct {
	// Client has the credentials and options of all stores. Its addresses are those of the map.
	Client redisclient.Config
	// Store is that of each store. Its client is the one that is opened.
	Store bucket.RedisConfig
	// FailOn is how bad a finding of the doctor is for which a store is refused. Empty means doctor.Error.
	FailOn doctor.Severity
	// Getenv reads the environment. Nil means os.Getenv.
	Getenv func(string) string
}

// FindingsError says what the doctor has found in a store.
type FindingsError struct {
	// Findings are those that are as bad as RedisConfig.FailOn.
	Findings []doctor.Finding
}

// Error names each finding by its code, and says what was seen.
func (e *FindingsError) Error() string {
	texts := make([]string, len(e.Findings))
	for i, f := range e.Findings {
		texts[i] = fmt.Sprintf("%s (%s)", f.Seen, f.Code)
	}
	return "the doctor has found: " + strings.Join(texts, "; ")
}

// OpenRedis returns what opens a Redis by the address of a [Member], as redisclient.Open reads it: several addresses, with commas between them, are nodes of a
// cluster, and $NAME is read from the environment, where no map shows its password. A store is examined by the doctor before anybody is placed in it.
func OpenRedis(cfg RedisConfig) Opener {
	if cfg.Getenv == nil {
		cfg.Getenv = os.Getenv
	}
	if cfg.FailOn == "" {
		cfg.FailOn = doctor.Error
	}
	return func(ctx context.Context, m Member) (Opened, error) { return cfg.openStore(ctx, m) }
}

func (c RedisConfig) openStore(ctx context.Context, m Member) (Opened, error) {
	address := m.Address
	if name, is := strings.CutPrefix(address, "$"); is {
		if address = c.Getenv(name); address == "" {
			return Opened{}, fmt.Errorf("the environment has no %.80s", name)
		}
	}
	if address == "" {
		return Opened{}, errors.New("it has no address")
	}
	options := c.Client
	options.Addresses = strings.Split(address, ",")
	client, err := redisclient.Open("", options)
	if err != nil {
		return Opened{}, err
	}
	found, err := doctor.Examine(ctx, doctor.Config{Client: client, Namespace: c.Store.Namespace, Timeout: c.Store.Timeout})
	var bad []doctor.Finding
	for _, f := range found {
		if f.Severity.AtLeast(c.FailOn) {
			bad = append(bad, f)
		}
	}
	if err == nil && len(bad) > 0 {
		err = &FindingsError{Findings: bad}
	}
	if err != nil {
		return Opened{}, errors.Join(err, client.Close())
	}
	of := c.Store
	of.Client = client
	store, err := bucket.NewRedis(of)
	if err != nil {
		return Opened{}, errors.Join(err, client.Close())
	}
	return Opened{Backend: store, Close: func() error { return errors.Join(store.Close(), client.Close()) }}, nil
}
