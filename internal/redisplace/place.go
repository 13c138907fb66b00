// Package redisplace has what is the same of everything that lies in a Redis beside the budgets: where it is, how long a call may take, which
// rights it needs, and which run of an instance has written it.
package redisplace

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// Place is a Redis and a namespace in it, as configurations have them.
type Place struct {
	Client    redis.UniversalClient
	Namespace string
}

// Complete puts the default namespace in and returns everything that is wrong, in the words of a Config of a package.
func (p *Place) Complete(pkg string) error {
	err := p.CompleteNamespace(pkg)
	if p.Client == nil {
		err = errors.Join(fmt.Errorf("%s: Config.Client is nil: set the result of redisclient.Open", pkg), err)
	}
	return err
}

// CompleteNamespace is Complete for those who need no client.
func (p *Place) CompleteNamespace(pkg string) error {
	p.Namespace = cmp.Or(p.Namespace, "main")
	return check(pkg, "Namespace", p.Namespace)
}

// Key returns a key of the namespace.
func (p *Place) Key(name string) string { return "rl:" + p.Namespace + ":" + name }

// Named returns the key of one of several things of a kind, in a slot of its own: an empty name means main. The error is that of a name that does
// not fit.
func (p *Place) Named(pkg, kind, name string) (key string, _ error) {
	name = cmp.Or(name, "main")
	return p.Key(kind + ":{" + name + "}"), check(pkg, "Name", name)
}

// check judges a name as a namespace of budgets is judged.
func check(pkg, field, name string) error {
	if _, err := bucket.ACLRules(name, false); err != nil {
		return fmt.Errorf("%s: Config.%s %.80q: 1 to 64 characters of A-Z a-z 0-9 _ . - fit", pkg, field, name)
	}
	return nil
}

// Bounded gives a call a deadline. Without one clients for budgets give it a tenth of a second. One that the caller has set holds if it is sooner.
func Bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, bucket.DefaultAdminTimeout)
}

// Rules adds the rights to commands to rules for ACL SETUSER.
func Rules(rules []string, commands ...string) []string {
	for _, command := range commands {
		rules = append(rules, "+"+command)
	}
	return rules
}
