package control

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// Bounds of what was signed.
const (
	// maxSkew is how far the time of a signed revision is from that of the daemon at most: clocks differ.
	maxSkew = 15 * time.Minute
)

// PublishInput is a policy document to be published. It is as a whole what tells two requests with one key apart.
type PublishInput struct {
	// Document is the document, byte for byte as its author has written it.
	Document []byte
	// Expected is the number of the newest revision that the author has seen, 0 for none. The document is published under the
	// next number.
	Expected uint64
	// Signed is who has signed the revision. Nil means nobody, which is refused where [Config.Keys] has keys.
	Signed *Signed
}

// Signed is a signature of the revision that is to be published: that of [policy.Revision.Sign], of a revision with the next number, the
// hash of the document, the reason of the request, and what stands here.
type Signed struct {
	// Author is who the revision says has written it. Published is when, to the millisecond, and at most a quarter of an hour from
	// now.
	Author    string
	Published time.Time
	Signature []byte
}

// Published is a revision without its document.
type Published struct {
	Number    uint64      `json:"number"`
	Hash      policy.Hash `json:"hash"`
	Author    string      `json:"author"`
	Reason    string      `json:"reason"`
	Published time.Time   `json:"published"`
	Signed    bool        `json:"signed"`
	// Warnings are what is odd about the document and holds all the same.
	Warnings []tiers.Warning `json:"warnings,omitempty"`
	// Misfits are tenants whose records stop fitting. Nil is none.
	Misfits *Misfits `json:"misfits,omitempty"`
}

// compiled is a revision that compiles.
type compiled struct {
	*policy.Revision
	// snapshot is nil if it does not after all.
	snapshot *tiers.Snapshot
	// operations are the spellings of all operation rules, and rulesOf says whose they are.
	operations map[string]bool
	rulesOf    *ruleIndex
}

// Publish publishes a document as the next revision of the policy: [access.PublishPolicy]. What does not compile, as an instance compiles
// it, is an [*InvalidError] with all of its mistakes. It is relayed as a [MessagePolicy].
func (c *Control) Publish(ctx context.Context, r Request, in PublishInput) (*Published, error) {
	return c.publish(ctx, r, action{Action: access.PublishPolicy}, in, in)
}

// RevertInput says which revision is to hold again.
type RevertInput struct {
	// To is the number of a revision. Its document becomes that of the next one.
	To uint64
	// Expected and Signed are those of [PublishInput].
	Expected uint64
	Signed   *Signed
}

// Revert publishes the document of an earlier revision again, as a revision of its own: [access.RevertPolicy]. A document that compiles no
// longer is refused, as by [Control.Publish]. There is [ErrNotFound] for a number that no revision has.
func (c *Control) Revert(ctx context.Context, r Request, in RevertInput) (*Published, error) {
	if err := access.Authorize(r.Actor, access.RevertPolicy, ""); err != nil {
		return nil, err
	}
	if in.To == 0 {
		return nil, ErrNotFound
	}
	was, err := c.revision(ctx, in.To)
	if err != nil {
		return nil, err
	}
	return c.publish(ctx, r, action{Action: access.RevertPolicy}, in, PublishInput{Document: was.Document, Expected: in.Expected, Signed: in.Signed})
}

// publish publishes a document.
func (c *Control) publish(ctx context.Context, r Request, a action, asked any, in PublishInput) (*Published, error) {
	var (
		next    *compiled
		misfits *Misfits
	)
	check := func() (err error) {
		// It takes time, for which nobody else waits.
		if next, err = c.next(ctx, &r, in); err != nil {
			return err
		}
		misfits, err = c.misfits(ctx, next)
		return err
	}
	return mutate(ctx, c, r, a, asked, check, func(tx *store.Tx) (*Published, done, error) {
		if err := tx.Publish(next.Revision, in.Expected); err != nil {
			return nil, done{}, err
		}
		before, err := tx.Revisions(next.Number, 1)
		if err != nil {
			return nil, done{}, err
		}
		is := published(next.Revision)
		d := done{target: "policy", after: is, revisionBefore: in.Expected, revisionAfter: next.Number, kind: MessagePolicy}
		if len(before) > 0 {
			d.before = published(&before[0])
		}
		answer := *is
		answer.Warnings, answer.Misfits = next.snapshot.Warnings(), misfits
		return &answer, d, nil
	})
}

// next makes the next revision, and compiles it.
func (c *Control) next(ctx context.Context, r *Request, in PublishInput) (*compiled, error) {
	next, err := c.unsigned(r, in.Document, in.Expected)
	if err != nil {
		return nil, err
	}
	if s := in.Signed; s != nil {
		if skew := s.Published.Sub(next.Published); skew > maxSkew || skew < -maxSkew {
			return nil, invalid("signature", "it says that the revision was published at %s, more than %s from now", s.Published.UTC().Format(time.RFC3339), maxSkew)
		}
		next.Author, next.Published, next.Signature = s.Author, s.Published.UTC().Truncate(time.Millisecond), s.Signature
		if err := checkName("author", next.Author, policy.MaxText); err != nil {
			return nil, err
		}
		const maxSignature = 64
		if len(s.Signature) != maxSignature {
			return nil, invalid("signature", "it has %d bytes, want %d", len(s.Signature), maxSignature)
		}
	}
	if len(c.cfg.Keys) > 0 {
		if err := next.Verify(c.cfg.Keys); err != nil {
			return nil, &InvalidError{Field: "signature", Err: err}
		}
	}
	return c.compile(ctx, next)
}

// unsigned makes the next revision, which nobody has signed.
func (c *Control) unsigned(r *Request, document []byte, expected uint64) (*policy.Revision, error) {
	if expected >= policy.MaxNumber {
		return nil, invalid("expected revision", "no revision has a number above %d", uint64(policy.MaxNumber))
	}
	return &policy.Revision{
		Number: expected + 1, Document: document, Hash: policy.HashOf(document),
		Author: r.by(policy.MaxText), Reason: r.Reason, Published: c.now().Truncate(time.Millisecond),
	}, nil
}

// compile compiles a revision as instances do, when it is its turn.
func (c *Control) compile(ctx context.Context, r *policy.Revision) (*compiled, error) {
	leave, err := c.compiles.take(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return c.compileNow(r)
}

func (c *Control) compileNow(r *policy.Revision) (*compiled, error) {
	snapshot, err := r.LoadWith(c.cfg.Parse)
	if err != nil {
		return nil, &InvalidError{Field: "document", Err: err}
	}
	written, err := c.cfg.Parse.Parse(r.Document)
	if err != nil {
		return nil, &InvalidError{Field: "document", Err: err}
	}
	operations := map[string]bool{}
	addOperations(operations, &written)
	return &compiled{r, snapshot, operations, newRuleIndex(&written)}, nil
}

// addOperations adds the spellings of all operation rules of a policy.
func addOperations(operations map[string]bool, p *tiers.Policy) {
	add := func(spellings []string) {
		for _, spelling := range spellings {
			operations[spelling] = true
		}
	}
	for _, tier := range p.Tiers {
		add(slices.Collect(maps.Keys(tier.Operations)))
		if tier.Users != nil {
			add(slices.Collect(maps.Keys(tier.Users.Operations)))
		}
	}
	for _, x := range p.Tenants {
		add(slices.Collect(maps.Keys(x.Operations)))
		if x.Users != nil {
			add(slices.Collect(maps.Keys(x.Users.Operations)))
		}
	}
}

// published is a revision without its document.
func published(r *policy.Revision) *Published {
	return &Published{Number: r.Number, Hash: r.Hash, Author: r.Author, Reason: r.Reason, Published: r.Published, Signed: len(r.Signature) > 0}
}

// Lint compiles a document that is not published, and returns what is odd about it: [access.CheckPolicy]. What does not compile is an
// [*InvalidError] with all mistakes.
func (c *Control) Lint(ctx context.Context, actor access.Actor, document []byte) ([]tiers.Warning, error) {
	if err := access.Authorize(actor, access.CheckPolicy, ""); err != nil {
		return nil, err
	}
	leave, err := c.checks.take(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	snapshot, err := c.cfg.Parse.Load(document, 0)
	if err != nil {
		return nil, &InvalidError{Field: "document", Err: err}
	}
	return snapshot.Warnings(), nil
}

// Policy returns a revision of the policy with its document, 0 for the newest: [access.ReadPolicy]. There is [ErrNotFound] if there is none.
func (c *Control) Policy(ctx context.Context, actor access.Actor, number uint64) (*policy.Revision, error) {
	if err := access.Authorize(actor, access.ReadPolicy, ""); err != nil {
		return nil, err
	}
	return c.revision(ctx, number)
}

func (c *Control) revision(ctx context.Context, number uint64) (found *policy.Revision, _ error) {
	err := c.cfg.Store.Read(ctx, func(v *store.View) error {
		if number == 0 {
			head, err := v.Head()
			if err != nil {
				return err
			}
			number = head.Policy
		}
		var err error
		found, err = v.Revision(number)
		return err
	})
	if err == nil && found == nil {
		err = ErrNotFound
	}
	return found, err
}

// Policies returns at most n revisions below a number, 0 for all, the newest first: [access.ReadPolicy].
func (c *Control) Policies(ctx context.Context, actor access.Actor, below uint64, n int) (found []Published, _ error) {
	if err := access.Authorize(actor, access.ReadPolicy, ""); err != nil {
		return nil, err
	}
	err := c.cfg.Store.Read(ctx, func(v *store.View) error {
		revisions, err := v.Revisions(below, n)
		for i := range revisions {
			found = append(found, *published(&revisions[i]))
		}
		return err
	})
	return found, err
}

// current returns the newest revision, compiled if this daemon can, and nil before the first. It is not asked for within a change,
// which it would make long.
func (c *Control) current(ctx context.Context) (*compiled, error) {
	var newest *policy.Revision
	known := c.newest.Load()
	err := c.cfg.Store.Read(ctx, func(v *store.View) error {
		head, err := v.Head()
		if err != nil || head.Policy == 0 || known != nil && known.Number == head.Policy {
			return err
		}
		newest, err = v.Revision(head.Policy)
		return err
	})
	if err != nil || newest == nil {
		return known, err
	}
	// Of all who ask for what was published just now, one compiles it.
	leave, err := c.compiles.take(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if known = c.newest.Load(); known != nil && known.Number == newest.Number {
		return known, nil
	}
	next, err := c.compileNow(newest)
	if err != nil {
		// A newer daemon has published it. What can be done without a policy is done all the same.
		next = &compiled{Revision: newest}
	}
	c.newest.Store(next)
	return next, nil
}

// judged runs what is checked against the newest policy, and again while it returns [ErrPolicyChanged], five times in all. The policy is nil before the first.
func judged[T any](ctx context.Context, c *Control, run func(newest *compiled) (T, error)) (answer T, _ error) {
	const tries = 5
	for try := 1; ; try++ {
		newest, err := c.current(ctx)
		if err != nil {
			return answer, err
		}
		answer, err = run(newest)
		if try == tries || !errors.Is(err, ErrPolicyChanged) {
			return answer, err
		}
	}
}

// rules returns the snapshot, nil if there is no policy that this daemon can judge by.
func (p *compiled) rules() *tiers.Snapshot {
	if p == nil {
		return nil
	}
	return p.snapshot
}

// holds returns [ErrPolicyChanged] if the policy is not the newest one any more.
func (p *compiled) holds(tx *store.Tx) error {
	if tx.Head().Policy != p.number() {
		return ErrPolicyChanged
	}
	return nil
}

// number returns that of the revision, 0 before the first.
func (p *compiled) number() uint64 {
	if p == nil {
		return 0
	}
	return p.Number
}
