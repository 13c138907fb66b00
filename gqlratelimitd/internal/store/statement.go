package store

import (
	"errors"
	"math"
	"time"
)

// Statement is what a tenant has used in a period that is frozen.
type Statement struct {
	// Number counts statements from 1 on.
	Number uint64
	Tenant string
	// FirstDay is the first day, and UntilDay the one after the last, counted since 1970.
	FirstDay, UntilDay int64
	// Corrects is the number of the statement of the same period in whose place it is, 0 for none.
	Corrects uint64
	Frozen   time.Time
	// Hash is the SHA-256 of the text, and Note the text with its signature, nil in lists.
	Hash [32]byte
	Note []byte
}

const (
	statementListed  = "number, tenant, first_day, until_day, corrects, frozen, hash, "
	statementColumns = statementListed + "note"
)

func scanStatement(row scanner, s *Statement) error {
	var hash []byte
	err := row.Scan(&s.Number, &s.Tenant, &s.FirstDay, &s.UntilDay, &s.Corrects, instant{&s.Frozen}, &hash, &s.Note)
	if err == nil && copy(s.Hash[:], hash) != len(s.Hash) {
		err = errors.New("the hash of a statement has another length")
	}
	return err
}

// Statement returns a statement, nil if there is none.
func (v *View) Statement(number uint64) (*Statement, error) {
	if number > math.MaxInt64 {
		return nil, nil
	}
	return one(v, scanStatement, "SELECT "+statementColumns+" FROM usage_statement WHERE number = $1", number)
}

// Statements returns at most n statements below a number, 0 for all, the newest first and without their notes: of a tenant, or of all if it is empty.
func (v *View) Statements(tenant string, below uint64, n int) ([]Statement, error) {
	if below == 0 || below > math.MaxInt64 {
		below = math.MaxInt64
	}
	if tenant == "" {
		return many(v, scanStatement, "SELECT "+statementListed+"NULL FROM usage_statement WHERE number < $1 ORDER BY number DESC LIMIT $2", below, page(n))
	}
	return many(v, scanStatement, "SELECT "+statementListed+"NULL FROM usage_statement WHERE tenant = $1 AND number < $2 ORDER BY number DESC LIMIT $3", tenant, below, page(n))
}

// StatementWithin returns the newest statement of a tenant that is of a day in a time, nil if there is none.
func (v *View) StatementWithin(tenant string, firstDay, untilDay int64) (*Statement, error) {
	return one(v, scanStatement, "SELECT "+statementColumns+" FROM usage_statement WHERE tenant = $1 AND first_day < $3 AND until_day > $2 ORDER BY number DESC LIMIT 1",
		tenant, firstDay, untilDay)
}

// StatementUntil returns the newest statement of a tenant that is of the days before one, nil if there is none.
func (v *View) StatementUntil(tenant string, untilDay int64) (*Statement, error) {
	return one(v, scanStatement, "SELECT "+statementColumns+" FROM usage_statement WHERE tenant = $1 AND until_day = $2 ORDER BY number DESC LIMIT 1", tenant, untilDay)
}

// NextStatement returns the number of the next statement. Nobody else takes it before the change ends.
func (tx *Tx) NextStatement() (uint64, error) {
	last, err := one(&tx.View, scanNumber, "SELECT coalesce(max(number), 0) FROM usage_statement")
	if err != nil {
		return 0, err
	}
	return uint64(*last) + 1, nil
}

// AddStatement writes a statement, which stays for ever.
func (tx *Tx) AddStatement(s *Statement) error {
	return tx.exec("INSERT INTO usage_statement ("+statementColumns+") VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
		s.Number, s.Tenant, s.FirstDay, s.UntilDay, s.Corrects, micros(s.Frozen), s.Hash[:], s.Note)
}

// HoldUsage has nothing of usage forgotten before the change ends, and returns what there is.
func (tx *Tx) HoldUsage() (UsageState, error) {
	s, err := tx.usageState(tx.dialect.lock("SHARE"))
	if err != nil {
		return UsageState{}, err
	}
	return *s, nil
}

// UsageWaits reports whether something of days, counted since 1970, is yet to be computed of a tenant, or of any if it is empty.
func (v *View) UsageWaits(tenant string, firstDay, untilDay int64) (bool, error) {
	var w where
	if tenant != "" {
		w.and("tenant = ?", []byte(tenant))
	}
	w.and("(series = 'usage_hour' AND at >= ? AND at < ? OR series = 'usage_day' AND at >= ? AND at < ?)", firstDay*hoursOfDay, untilDay*hoursOfDay, firstDay, untilDay)
	n, err := one(v, scanNumber, "SELECT count(*) FROM (SELECT 1 FROM usage_dirty"+w.text.String()+" LIMIT 1) AS found", w.args...)
	if err != nil {
		return false, err
	}
	return *n > 0, nil
}

// UsageSum is what was counted in a time of a unit, or of a root field.
type UsageSum struct {
	Unit, Field, Grade        string
	Charged, GivenBack, Calls int64
}

// UsageOfDays returns what a tenant has in days, counted since 1970, from one on and before another: at most n sums, those of units first, and then those of which most
// was charged.
func (v *View) UsageOfDays(tenant string, firstDay, untilDay int64, n int) ([]UsageSum, error) {
	return many(v, func(row scanner, s *UsageSum) error {
		var unit, field []byte
		err := row.Scan(&unit, &field, &s.Grade, &s.Charged, &s.GivenBack, &s.Calls)
		s.Unit, s.Field = string(unit), string(field)
		return err
	}, "SELECT unit, field, grade, "+v.dialect.sum("charged")+", "+v.dialect.sum("given_back")+", "+v.dialect.sum("calls")+
		" FROM usage_day WHERE tenant = $1 AND at >= $2 AND at < $3 GROUP BY unit, field, grade ORDER BY CASE WHEN length(field) = 0 THEN 0 ELSE 1 END, 4 DESC, unit, field, grade LIMIT $4",
		[]byte(tenant), firstDay, untilDay, n)
}

// UsageTenants returns at most n tenants after a name of which something was counted on any day that is kept, by name.
func (v *View) UsageTenants(after string, n int) ([]string, error) {
	from := []byte(after)
	if after != "" {
		from = append(from, 0)
	}
	found, err := v.tenantsIn("usage_day", from, page(n))
	names := make([]string, len(found))
	for i, tenant := range found {
		name, _ := tenant.([]byte)
		names[i] = string(name)
	}
	return names, err
}
