package mongofeed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// LimitsConfig says where [Limits] are.
type LimitsConfig struct {
	// Collection has a document for each service. It is required. It is read from the primary and by majority, whatever its own
	// options are.
	Collection *mongo.Collection
	// Service is that of the document. It is required.
	Service string
	// Fields are the names of the parts of a document.
	Fields Fields
	// Ignore are further fields that documents have and that say nothing about limits. Any other field is a mistake: a limit that nobody
	// reads would hold for nobody.
	Ignore []string
	// Parameters say where requests have what keys are made of, by the name that a part of a key has, as in a policy: lang, for
	// example, for a key tenant:acme,lang:en. Nil means that keys are about tenants, teams, users and tiers only.
	Parameters map[string]tiers.Parameter
}

// Fields are what the parts of a document of [Limits] are called. The zero value is the default in each field.
type Fields struct {
	// Service is the name of the service, a string. Empty means service.
	Service string
	// General are the limits of every tenant that has no others, by name. Empty means general_limits.
	General string
	// Custom are the limits of single tenants, and of requests that carry certain values, by key, and by name. Empty means custom_limits.
	Custom string
	// Updated is when somebody has written the document. It is not read. Empty means last_updated.
	Updated string
}

// Limits is a policy.Feed of a document that somebody else writes, with the limits of a service: general ones, and custom ones by
// key. It is made by [NewLimits]. Several followers may share one.
//
// The document is translated into a policy with one tier, general, and an exception for each key:
//
//	{service: "shop", general_limits: {minute: 100}, custom_limits: {"tenant:acme": {minute: 500}}, last_updated: …}
//
// A limit is a number of requests, under the name second, minute, hour or day, which is its period; or an object with the keys
// that a limit has in a policy. A custom limit replaces the general one of the same name, and adds to it otherwise; null removes it. A key
// is the name of a tenant, or tenant: and the name, which is how a name with a colon is written; or it has other parts, as
// tenant:acme,lang:en has ([tiers.ParseKey]). Each of these has budgets of its own, which stand in the place of the general ones, for requests
// that carry all its parts ([LimitsConfig.Parameters]); of those that a request matches, that of most parts. What cannot be translated is refused.
//
// Whatever changes the translation is a new revision, with the number after that of the policy that holds, as from a policy.File: an
// operator who restores an older document is obeyed. The time of the last update is not read: clocks differ, and it does not grow in
// the order of the commits. Such a document has no signature.
type Limits struct {
	collection *mongo.Collection
	service    string
	fields     Fields
	ignored    map[string]bool
	parameters map[string]tiers.Parameter
}

var _ policy.Feed = (*Limits)(nil)

// NewLimits returns the feed of a document. It does not connect. The error has everything that is wrong with the configuration.
func NewLimits(cfg LimitsConfig) (*Limits, error) {
	var errs []error
	if cfg.Collection == nil {
		errs = append(errs, errors.New("mongofeed: LimitsConfig.Collection is nil: set the collection that has the limits"))
	}
	if cfg.Service == "" {
		errs = append(errs, errors.New("mongofeed: LimitsConfig.Service is empty: write the name of the service"))
	}
	f := Fields{
		Service: cmp.Or(cfg.Fields.Service, "service"), General: cmp.Or(cfg.Fields.General, "general_limits"),
		Custom: cmp.Or(cfg.Fields.Custom, "custom_limits"), Updated: cmp.Or(cfg.Fields.Updated, "last_updated"),
	}
	used := map[string]bool{}
	for _, name := range [...]string{f.Service, f.General, f.Custom, f.Updated} {
		if used[name] || strings.HasPrefix(name, "$") || strings.ContainsAny(name, ".\x00") {
			errs = append(errs, fmt.Errorf("mongofeed: LimitsConfig.Fields: %.80q is the name of two fields, or of none: write another one", name))
		}
		used[name] = true
	}
	ignored := map[string]bool{"_id": true, f.Service: true, f.Updated: true}
	for _, name := range cfg.Ignore {
		if name == f.General || name == f.Custom {
			errs = append(errs, fmt.Errorf("mongofeed: LimitsConfig.Ignore has %.80q, which has limits: take it out", name))
		}
		ignored[name] = true
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Limits{collection: byMajority(cfg.Collection), service: cfg.Service, fields: f, ignored: ignored, parameters: maps.Clone(cfg.Parameters)}, nil
}

// String returns the collection and the name of the service.
func (l *Limits) String() string { return place(l.collection) + "/" + l.service }

// Newest implements policy.Feed.
func (l *Limits) Newest(ctx context.Context, have policy.Head) (*policy.Revision, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// Of two documents of one service nobody knows which one is meant.
	found, err := l.collection.Find(ctx, bson.D{{Key: l.fields.Service, Value: l.service}}, options.Find().SetLimit(2))
	if err != nil {
		return nil, wrap(err)
	}
	var documents []bson.Raw
	if err := found.All(ctx, &documents); err != nil {
		return nil, wrap(err)
	}
	if len(documents) == 0 {
		return nil, policy.ErrEmpty
	}
	r := &policy.Revision{Number: have.Number + 1}
	if len(documents) > 1 {
		return nil, malformed(r, fmt.Errorf("there are two documents of the service %.80q: remove one", l.service))
	}
	r.Document, err = l.translate(documents[0])
	if err != nil {
		r.Hash = policy.HashOf(documents[0])
		return nil, &policy.RefusedError{Revision: r.Head(), Reason: policy.ReasonDocument, Err: err}
	}
	if r.Hash = policy.HashOf(r.Document); r.Hash == have.Hash {
		return nil, nil
	}
	return r, nil
}

// Hints implements policy.Feed by a change stream of the collection, which holds little else.
func (l *Limits) Hints(ctx context.Context, wake func()) error {
	return watch(ctx, l.collection, nil, wake)
}
