package session

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory/redisdirectory"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisfeed"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Policy is a policy as it holds, and as it was written.
type Policy struct {
	*tiers.Snapshot

	// Written is the document.
	Written tiers.Policy
	// From is what the policy was read from.
	From string
	// Revision is that of the feed it came from. It is nil for a file.
	Revision *policy.Revision
}

// LoadPolicy reads a policy document, or a revision as a feed of files has it.
func LoadPolicy(path string) (*Policy, error) {
	document, err := cli.ReadFile(path, tiers.MaxDocument+64<<10)
	if err != nil {
		return nil, err
	}
	revision := new(policy.Revision)
	if revision.UnmarshalBinary(document) == nil {
		return compile(revision.Document, path, revision)
	}
	return compile(document, path, nil)
}

// PolicyOf compiles a revision, which stands where the text says.
func PolicyOf(r *policy.Revision, where string) (*Policy, error) {
	return compile(r.Document, fmt.Sprintf("revision %d %s", r.Number, where), r)
}

func compile(document []byte, from string, revision *policy.Revision) (*Policy, error) {
	var number uint64 = 1
	if revision != nil {
		if err := revision.Check(); err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}
		number = revision.Number
	}
	// How large a document servers take is their configuration, which the command does not know.
	read := tiers.ParseConfig{MaxDocument: tiers.MaxDocument}
	snapshot, err := read.Load(document, number)
	if err != nil {
		if wrong := (*tiers.PolicyError)(nil); errors.As(err, &wrong) {
			wrong.File = from
			return nil, wrong
		}
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	written, err := read.Parse(document)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return &Policy{Snapshot: snapshot.Snapshot(), Written: written, From: from, Revision: revision}, nil
}

// PolicyFlags say which policy holds.
type PolicyFlags struct {
	File      string
	Name      string
	Directory string
}

// Register adds the flags.
func (p *PolicyFlags) Register(flags *flag.FlagSet) {
	flags.StringVar(&p.File, "policy", "", "policy `file` of the servers; $"+PolicyVariable+" unless given, and without either the newest revision in Redis")
	flags.StringVar(&p.Name, "policy-name", "main", "the `name` of the policy in Redis, as in redisfeed.Config")
	flags.StringVar(&p.Directory, "directory", "main", "the `name` of the directory of tenants in Redis, as in redisdirectory.Config")
}

// path is that of the policy file, empty if there is none.
func (p *PolicyFlags) path(c cli.Console) string {
	if p.File != "" {
		return p.File
	}
	return c.Getenv(PolicyVariable)
}

// Read reads the policy of the flags. Without a file it is the newest revision in Redis; live is nil where there is none.
func (p *PolicyFlags) Read(c cli.Console, live *Live) (*Policy, error) {
	if path := p.path(c); path != "" {
		return LoadPolicy(path)
	}
	if live == nil {
		return nil, cli.Usagef("no policy is given: say -policy FILE, or set $%s", PolicyVariable)
	}
	return p.Running(live)
}

// Running reads the newest revision in Redis.
func (p *PolicyFlags) Running(live *Live) (*Policy, error) {
	feed, err := redisfeed.New(redisfeed.Config{
		Client: live.Client, Namespace: live.Namespace, Name: p.Name, MaxDocument: tiers.MaxDocument,
	})
	if err != nil {
		return nil, cli.Usagef("%v", err)
	}
	var revision *policy.Revision
	err = live.Call(func(ctx context.Context) error {
		revision, err = feed.Newest(ctx, policy.Head{})
		return err
	})
	switch {
	case errors.Is(err, policy.ErrEmpty):
		return nil, cli.Usagef("no policy file is given, and Redis has no policy by the name %s in the namespace %s: say -policy FILE, set $%s, or name another with -policy-name or -namespace",
			p.Name, live.Namespace, PolicyVariable)
	case err != nil:
		return nil, err
	}
	return PolicyOf(revision, "in Redis")
}

// Record reads what the directory has of a tenant: nil if it has nothing, or if the policy lists the tenant itself.
func (p *PolicyFlags) Record(live *Live, held *Policy, tenant string) (*tiers.Record, error) {
	if live == nil || tenant == "" || held.Lists(tenant) {
		return nil, nil //nolint:nilnil // no record is no mistake
	}
	return p.Recorded(live, tenant)
}

// Recorded reads what the directory has of a tenant, nil for nothing, whether or not a policy lists it.
func (p *PolicyFlags) Recorded(live *Live, tenant string) (*tiers.Record, error) {
	records, err := redisdirectory.New(redisdirectory.Config{Client: live.Client, Namespace: live.Namespace, Name: p.Directory})
	if err != nil {
		return nil, cli.Usagef("%v", err)
	}
	var found *directory.Record
	err = live.Call(func(ctx context.Context) error {
		found, err = records.Tenant(ctx, tenant)
		return err
	})
	if errors.Is(err, directory.ErrEmpty) || err == nil && found == nil {
		return nil, nil //nolint:nilnil // no record is no mistake
	}
	if err != nil {
		return nil, err
	}
	return tiers.ParseRecord(found.Document)
}

// tierNames are those of the policy.
func (p *Policy) tierNames() []string { return slices.Sorted(maps.Keys(p.Written.Tiers)) }

// HasFile reports whether a policy file is named.
func (p *PolicyFlags) HasFile(c cli.Console) bool { return p.path(c) != "" }
