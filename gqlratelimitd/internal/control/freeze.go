package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/freeze"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/statement"
)

// statementPeriod is the time that a statement is of, in days since 1970.
type statementPeriod struct{ first, until int64 }

// FreezeUsage makes statements of a billing period that is over: [access.FreezeUsage], of a tenant or of all. A statement, the entry of the audit log that has its
// hash, and that it follows the one before are one transaction; who freezes a period twice, or in two daemons at once, has one. If something has changed since, the
// next statement is a correction, which states the difference.
//
// What cannot be frozen yet, or not any more, is an [ErrInvalid] that says what is missing.
func (c *Control) FreezeUsage(ctx context.Context, r Request, in FreezeInput) (*Frozen, error) {
	var p statementPeriod
	check := func() (err error) {
		if err := c.checkFreeze(&in); err != nil {
			return err
		}
		p, err = in.period()
		if err != nil {
			return err
		}
		return p.over(c.now())
	}
	return mutate(ctx, c, r, action{Action: access.FreezeUsage, tenant: in.Tenant}, in, check, func(tx *store.Tx) (*Frozen, done, error) {
		f := &freezing{c: c, tx: tx, r: &r, period: p}
		answer, err := f.freeze(ctx, &in)
		return answer, done{noted: true}, err
	})
}

// checkFreeze returns what is wrong with what is asked for, whatever the period.
func (c *Control) checkFreeze(in *FreezeInput) error {
	switch {
	case c.cfg.StatementKey == nil:
		return invalid("key", "nobody can sign statements here")
	case in.Tenant == "" && (in.N < 1 || in.N > MaxFrozen):
		return invalid("first", "1 to %d fits", MaxFrozen)
	case in.Tenant != "" && in.After != "":
		return invalid("after", "it says nothing beside a tenant")
	}
	return checkText("tenant", in.Tenant, audit.MaxName)
}

// period reads the period.
func (in *FreezeInput) period() (p statementPeriod, _ error) {
	if (in.Month == "") == (in.From == "" && in.To == "") {
		return p, invalid("month", "either a month is needed, or from and to")
	}
	if in.Month != "" {
		month, err := time.Parse("2006-01", in.Month)
		if err != nil || month.Year() < firstUsageYear {
			return p, invalid("month", "it is no month such as 2026-10")
		}
		return statementPeriod{store.DayOf(month), store.DayOf(month.AddDate(0, 1, 0))}, nil
	}
	for _, day := range [...]struct {
		field, text string
		into        *int64
	}{{"from", in.From, &p.first}, {"to", in.To, &p.until}} {
		at, err := time.Parse(time.DateOnly, day.text)
		if err != nil || at.Year() < firstUsageYear {
			return p, invalid(day.field, "it is no day such as 2026-10-01")
		}
		*day.into = store.DayOf(at)
	}
	if p.until <= p.first || p.until-p.first > maxStatementDays {
		return p, invalid("to", "it is the day after the last one, at most %d days after from", maxStatementDays)
	}
	return p, nil
}

// settled is when nothing is counted in the period any more.
func (p statementPeriod) settled() time.Time { return dayAt(p.until).Add(StatementGrace) }

// over returns an error if something may still be counted in the period.
func (p statementPeriod) over(now time.Time) error {
	if now.Before(p.settled()) {
		return waits(freeze.Unsettled, "it ends on %s, and settlements of it come until %s: freeze it after that", shown(dayAt(p.until)), shown(p.settled()))
	}
	return nil
}

func shown(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// freezing makes statements in one transaction.
type freezing struct {
	c      *Control
	tx     *store.Tx
	r      *Request
	period statementPeriod
	cover  *coverage
}

func (f *freezing) freeze(ctx context.Context, in *FreezeInput) (_ *Frozen, err error) {
	if err := f.c.checkKey(ctx, f.tx.Audit()); err != nil {
		return nil, err
	}
	// Nothing is forgotten before the statement is there.
	kept, err := f.tx.HoldUsage()
	if err != nil {
		return nil, err
	}
	if f.cover, err = f.period.collected(&f.tx.View, kept, in.Tenant, in.Incomplete); err != nil {
		return nil, err
	}
	answer := &Frozen{}
	if in.Tenant != "" {
		head, err := f.tenant(ctx, in.Tenant)
		if err != nil {
			return nil, err
		}
		answer.Statements = []StatementHead{*head}
		return answer, nil
	}
	after, err := frozenPlaceOf(in.After)
	if err != nil {
		return nil, err
	}
	tenants, err := f.tx.UsageTenants(after, in.N+1)
	if err != nil {
		return nil, err
	}
	if len(tenants) > in.N {
		tenants = tenants[:in.N]
		answer.Next = encodePlace(frozenPlace{[]byte(tenants[in.N-1])})
	}
	for _, tenant := range tenants {
		if in.again {
			if err := f.correct(ctx, tenant, kept, answer); err != nil {
				return nil, err
			}
		}
		head, err := f.tenant(ctx, tenant)
		if err := answer.add(tenant, head, err); err != nil {
			return nil, err
		}
	}
	if answer.Next == "" {
		err = f.period.note(f.tx)
	}
	return answer, err
}

// add adds what has come of a tenant. The error is one that nobody but the machine is to blame for.
func (f *Frozen) add(tenant string, head *StatementHead, err error) error {
	var problem *InvalidError
	switch {
	case errors.Is(err, errNothingCounted):
	case errors.As(err, &problem):
		f.Left = append(f.Left, Unfrozen{visible(tenant, len(tenant)), Plain(problem.Error())})
	case err != nil:
		return err
	default:
		f.Statements = append(f.Statements, *head)
	}
	return nil
}

// frozenPlace is the last tenant of an answer, as clients bring it back. Names are any bytes.
type frozenPlace struct {
	Tenant []byte `json:"t"`
}

func frozenPlaceOf(text string) (string, error) {
	var p frozenPlace
	if text != "" && decodePlace(text, &p) != nil {
		return "", invalid("after", "it is not the next of an answer")
	}
	return string(p.Tenant), nil
}

// checkKey returns an error if the audit log names another key than that of this daemon: nobody would believe what it signs.
func (c *Control) checkKey(ctx context.Context, log audit.Reader) error {
	signed, err := log.Newest(ctx)
	if err != nil || signed == nil {
		return err
	}
	checkpoint, err := audit.ReadCheckpoint(signed)
	if err == nil && checkpoint.Key != c.cfg.StatementKey.Public() {
		problem := audit.ErrOtherKey.Error()
		err = &InvalidError{Field: "key", Problem: problem, Err: errors.Join(audit.ErrOtherKey, &freeze.WaitError{Reason: freeze.Key, Problem: problem})}
	}
	return err
}

// errNothingCounted says that a tenant has nothing in the period.
var errNothingCounted = invalid("tenant", "nothing was counted of it in the period")

// tenant makes the statement of a tenant, or returns the one that says the same already.
func (f *freezing) tenant(ctx context.Context, name string) (*StatementHead, error) {
	lines, err := f.lines(name)
	if err == nil {
		// Names are any bytes where they are counted.
		err = checkText("tenant", name, audit.MaxName)
	}
	if err != nil {
		return nil, err
	}
	there, err := f.tx.StatementWithin(name, f.period.first, f.period.until)
	if err != nil {
		return nil, err
	}
	if there != nil && (there.FirstDay != f.period.first || there.UntilDay != f.period.until) {
		return nil, invalid("period", "statement %d is of %s to %s: no day is in two periods", there.Number, shown(dayAt(there.FirstDay)), shown(dayAt(there.UntilDay)))
	}
	s := &statement.Statement{
		Tenant: name, From: dayAt(f.period.first), To: dayAt(f.period.until), Frozen: f.tx.Now(), Lines: lines,
	}
	s.Collected, s.Unknown = f.cover.until, f.cover.unknown
	if there != nil {
		before, err := readStatement(there)
		if err != nil {
			return nil, err
		}
		if s.Differences = statement.Difference(before.Lines, lines); len(s.Differences) == 0 {
			head := headOf(there)
			return &head, nil
		}
		s.Corrects = statement.Reference{Number: there.Number, Hash: there.Hash}
	}
	return f.add(ctx, s)
}

// add signs and writes a statement, and the entry of the audit log that has its hash.
func (f *freezing) add(ctx context.Context, s *statement.Statement) (*StatementHead, error) {
	var err error
	if s.Number, err = f.tx.NextStatement(); err != nil {
		return nil, err
	}
	before, err := f.tx.Statements(s.Tenant, 0, 1)
	if err != nil {
		return nil, err
	}
	if len(before) > 0 {
		s.Previous = statement.Reference{Number: before[0].Number, Hash: before[0].Hash}
	}
	signed, err := s.Sign(f.c.cfg.StatementKey)
	if problem := (*statement.Error)(nil); errors.As(err, &problem) {
		err = &InvalidError{Field: "tenant", Err: err}
	}
	if err != nil {
		return nil, err
	}
	written := &store.Statement{
		Number: s.Number, Tenant: s.Tenant, FirstDay: f.period.first, UntilDay: f.period.until, Corrects: s.Corrects.Number, Frozen: s.Frozen, Hash: s.Hash(), Note: signed,
	}
	head := headOf(written)
	head.New = true
	if err := note(ctx, f.tx, f.r, action{Action: access.FreezeUsage, tenant: s.Tenant}, doneBy(s)); err != nil {
		return nil, err
	}
	return &head, f.tx.AddStatement(written)
}

// frozenNote is what the audit log says of a statement.
type frozenNote struct {
	Number   uint64 `json:"number"`
	From     string `json:"from"`
	To       string `json:"to"`
	Hash     string `json:"hash"`
	Corrects uint64 `json:"corrects,omitempty"`
}

func doneBy(s *statement.Statement) *done {
	return &done{target: fmt.Sprintf("statement %d", s.Number), after: frozenNote{
		s.Number, s.From.Format(time.DateOnly), s.To.Format(time.DateOnly), s.Hash().String(), s.Corrects.Number,
	}}
}

const (
	// maxStatementFields is of how many root fields a statement has lines of their own: those of most points. The others have one together.
	maxStatementFields = 400
	// maxStatementSums is how many units and root fields are read, at each grade.
	maxStatementSums = 10_000
	otherFields      = "*"
)

// lines adds up what a tenant has in the period.
func (f *freezing) lines(tenant string) (lines []statement.Line, _ error) {
	sums, err := f.tx.UsageOfDays(tenant, f.period.first, f.period.until, maxStatementSums+1)
	switch {
	case err != nil:
		return nil, err
	case len(sums) == 0:
		return nil, errNothingCounted
	case len(sums) > maxStatementSums:
		return nil, invalid("tenant", "it has more than %d units and root fields", maxStatementSums)
	}
	others := map[statement.Line]int{}
	fields := 0
	for i := range sums {
		sum := &sums[i]
		l := statement.Line{Unit: visible(sum.Unit, len(sum.Unit)), Field: visible(sum.Field, len(sum.Field)), Grade: sum.Grade}
		if l.Field == "" {
			// Calls are of root fields alone.
			sum.Calls = 0
		} else if fields++; fields > maxStatementFields {
			l.Field = otherFields
		}
		at, ok := others[l]
		if !ok {
			at = len(lines)
			others[l] = at
			lines = append(lines, l)
		}
		into := &lines[at]
		into.Charged, into.GivenBack, into.Calls = capped(into.Charged, sum.Charged), capped(into.GivenBack, sum.GivenBack), capped(into.Calls, sum.Calls)
	}
	statement.Sort(lines)
	return lines, nil
}

// capped is a sum of two numbers that are not negative.
func capped(a, b int64) int64 { return min(a+b, statement.MaxCount) }

// readStatement reads one that was stored, which nobody has changed.
func readStatement(s *store.Statement) (*statement.Statement, error) {
	content, err := statement.Read(s.Note)
	if err != nil {
		return nil, err
	}
	if content.Hash() != s.Hash || content.Number != s.Number || content.Tenant != s.Tenant {
		return nil, fmt.Errorf("control: statement %d is not what was written", s.Number)
	}
	return content, nil
}
