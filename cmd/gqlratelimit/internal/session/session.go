package session

import (
	"flag"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
)

// Flags are those of a sub-command about a tenant of a live limiter.
type Flags struct {
	Redis  Redis
	Policy PolicyFlags
	Scope  Scope
}

// Register adds the flags.
func (f *Flags) Register(flags *flag.FlagSet) {
	f.Redis.Register(flags)
	f.Policy.Register(flags)
	f.Scope.Register(flags)
}

// Session is a live limiter, and what holds in it for the scope.
type Session struct {
	*Live

	Policy  *Policy
	Holding *Holding

	flags PolicyFlags
}

// Open connects and reads what holds. Notes go to the error output. Session.Close ends it.
func (f *Flags) Open(c cli.Console) (*Session, error) {
	if _, err := f.Scope.Owner(); err != nil {
		return nil, err
	}
	s, err := f.OpenPolicy(c)
	if err != nil {
		return nil, err
	}
	if s.Holding, err = s.Hold(f.Scope); err != nil {
		s.Close()
		return nil, err
	}
	for _, note := range s.Holding.Notes() {
		fmt.Fprintln(c.Stderr, "note:", note)
	}
	return s, nil
}

// OpenPolicy is [Flags.Open] for no scope: the session has no Holding.
func (f *Flags) OpenPolicy(c cli.Console) (*Session, error) {
	live, err := f.Redis.Open(c)
	if err != nil {
		return nil, err
	}
	held, err := f.Policy.Read(c, live)
	if err != nil {
		live.Close()
		return nil, err
	}
	return &Session{Live: live, Policy: held, flags: f.Policy}, nil
}

// Hold returns what holds for a scope, what the directory says of its tenant included.
func (s *Session) Hold(scope Scope) (*Holding, error) {
	record, err := s.flags.Record(s.Live, s.Policy, scope.Tenant)
	if err != nil {
		return nil, err
	}
	return s.Policy.Resolve(scope, record)
}
