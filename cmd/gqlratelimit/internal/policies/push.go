package policies

import (
	"bytes"
	"crypto/rand"
	"errors"
	"flag"
	"net/http"
	"strconv"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/daemon"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/internal/policydiff"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

const pushHelp = `
Usage: gqlratelimit policy push -reason TEXT [-base FILE | -expect N] [flags] FILE

Publishes a policy file, byte for byte, if the daemon still has what the change began with. That is
what FILE.revision says, which policy pull has written; or the content of -base, such as the file
before the merge; or the revision of -expect, 0 for the first policy. If somebody has published
meanwhile, it says who and what, and how to go on. A file that the daemon has already is left alone.

The exit code is 1 if nothing was published: somebody else has, or the policy has mistakes.

Examples:

    gqlratelimit policy push -reason "smaller budgets, ticket 16" policy.yaml
    git show HEAD^:policy.yaml > before.yaml
    gqlratelimit policy push -base before.yaml -reason "$(git log -1 --format=%s)" policy.yaml
`

// pushed says what became of a file.
type pushed string

// What can become of it.
const (
	pushedPublished pushed = "published"
	pushedUnchanged pushed = "unchanged"
	pushedConflict  pushed = "conflict"
	pushedWrong     pushed = "wrong"
)

// outcome is what became of a file, and why.
type outcome struct {
	result pushed
	// revision is what the daemon has now, nil if that is not known.
	revision *side
	// findings are mistakes, and what is odd.
	findings []findingJSON
	// meanwhile is what was published since based, the newest first, and changes what that has changed.
	based     uint64
	meanwhile []daemon.Published
	changes   []policydiff.Change
}

// push is a push that is under way.
type push struct {
	cli.Console

	daemon                     daemon.Flags
	path, base, reason, ticket string
	expect                     *uint64
	client                     *daemon.Client
	document                   []byte
	newest                     *policy.Revision
	out                        outcome
}

func runPush(c cli.Console, args []string) error {
	p := &push{Console: c}
	flags := c.NewFlags("policy push", pushHelp)
	p.daemon.Register(flags)
	flags.StringVar(&p.reason, "reason", "", "why, in a `text` for those who find it later; required")
	flags.StringVar(&p.ticket, "ticket", "", "where more is to be read: a `name` in the audit log")
	flags.StringVar(&p.base, "base", "", "`file` with what the change began with")
	flags.Func("expect", "the `number` of the revision that the change began with, 0 for none", func(text string) error {
		n, err := strconv.ParseUint(text, 10, 53)
		p.expect = &n
		return err
	})
	var err error
	if p.path, err = parseFile(c, flags, args); err != nil {
		return err
	}
	switch p.reason = strings.TrimSpace(p.reason); {
	case p.reason == "":
		return cli.Usagef("say why: -reason TEXT")
	case p.base != "" && p.expect != nil:
		return cli.Usagef("say one of -base and -expect")
	}
	if p.document, err = cli.ReadFile(p.path, tiers.MaxDocument); err != nil {
		return err
	}
	if p.client, err = p.daemon.Open(c); err != nil {
		return err
	}
	defer p.client.Close()
	if err := p.run(); err != nil {
		return err
	}
	p.write()
	if p.out.result != pushedPublished && p.out.result != pushedUnchanged {
		return cli.ErrFound
	}
	return nil
}

// run publishes the file if it may.
func (p *push) run() (err error) {
	found, err := examine(p.path)
	if err != nil {
		return err
	}
	for _, f := range found {
		if f.Severity == wrong {
			p.out.result = pushedWrong
		}
		if f.Severity != note {
			p.out.findings = append(p.out.findings, f)
		}
	}
	if p.out.result == pushedWrong {
		return nil
	}
	if p.newest, err = p.client.Newest(); err != nil {
		return err
	}
	if p.newest != nil && bytes.Equal(p.newest.Document, p.document) {
		p.out.result, p.out.revision = pushedUnchanged, sideOf(p.newest)
		return p.out.revision.write(p.path)
	}
	expected, err := p.expected()
	if err != nil {
		return err
	}
	if expected == nil {
		return p.conflict()
	}
	change := &daemon.Change{Document: p.document, Expected: *expected, Reason: p.reason, Ticket: p.ticket, Key: "push-" + rand.Text()}
	published, err := p.client.Publish(change)
	var refused *daemon.ProblemError
	switch {
	case err == nil:
		p.out.result = pushedPublished
		p.out.revision = &side{Revision: published.Number, Hash: policy.HashOf(p.document), Author: published.Author, Reason: published.Reason, Published: published.Published}
		return p.out.revision.write(p.path)
	case !errors.As(err, &refused):
		return err
	case refused.Status == http.StatusPreconditionFailed:
		// Somebody was faster.
		p.out.based = *expected
		if p.newest, err = p.client.Newest(); err != nil {
			return err
		}
		return p.conflict()
	case len(refused.Mistakes) > 0:
		p.out.result = pushedWrong
		for _, m := range refused.Mistakes {
			p.out.findings = append(p.out.findings, findingJSON{wrong, p.path, m.Line, m.Column, m.Path, m.Problem})
		}
		return nil
	}
	return err
}

// expected is the number of the revision that the change began with, nil if the daemon has another one by now.
func (p *push) expected() (*uint64, error) {
	number := uint64(0)
	if p.newest != nil {
		number = p.newest.Number
	}
	switch {
	case p.expect != nil:
		p.out.based = *p.expect
	case p.base != "":
		base, err := cli.ReadFile(p.base, tiers.MaxDocument)
		if err != nil {
			return nil, err
		}
		if p.newest == nil || !bytes.Equal(base, p.newest.Document) {
			return nil, p.basedOn(policy.HashOf(base))
		}
		p.out.based = number
	default:
		beside, err := readSide(p.path)
		switch {
		case err != nil:
			return nil, err
		case beside != nil:
			p.out.based = beside.Revision
		case p.newest != nil:
			return nil, cli.Usagef("nobody knows what %s began with: pull it first, or say -base FILE or -expect N; the daemon has %s",
				cli.Plain(p.path), sideOf(p.newest).says())
		}
	}
	if p.out.based != number {
		return nil, nil //nolint:nilnil // that it is another one is an answer
	}
	return &number, nil
}

// basedOn finds the newest revision of some bytes.
func (p *push) basedOn(hash policy.Hash) error {
	revisions, err := p.client.Since(0)
	for i := range revisions {
		if revisions[i].Hash == hash.String() {
			p.out.based = revisions[i].Number
			break
		}
	}
	return err
}

// conflict says what was published meanwhile.
func (p *push) conflict() (err error) {
	p.out.result = pushedConflict
	if p.newest == nil {
		return nil
	}
	p.out.revision = sideOf(p.newest)
	if p.out.meanwhile, err = p.client.Since(p.out.based); err != nil || p.out.based == 0 || p.out.based >= p.newest.Number {
		return err
	}
	base, err := p.client.Revision(p.out.based)
	if err != nil {
		return err
	}
	p.out.changes = changesBetween(base, p.newest)
	return nil
}

// changesBetween returns what differs between two revisions. Of one that this command cannot read nothing is known: who has published it
// is told all the same.
func changesBetween(was, is *policy.Revision) []policydiff.Change {
	before, err := session.PolicyOf(was, "of the daemon")
	after, err2 := session.PolicyOf(is, "of the daemon")
	if err != nil || err2 != nil {
		return nil
	}
	changes, _ := compare(before, after)
	return changes
}

// parseFile reads flags and the one file that goes with them, that of the environment unless given.
func parseFile(c cli.Console, flags *flag.FlagSet, args []string) (string, error) {
	files, err := cli.Parse(flags, args)
	switch {
	case err != nil:
		return "", err
	case len(files) == 1:
		return files[0], nil
	case len(files) == 0 && c.Getenv(session.PolicyVariable) != "":
		return c.Getenv(session.PolicyVariable), nil
	case len(files) == 0:
		return "", cli.Usagef("no policy is given: name a file, or set $%s", session.PolicyVariable)
	}
	return "", cli.Usagef("%d files are given: one fits", len(files))
}
