package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
)

// memory is a log in memory. The zero value is an empty one.
type memory struct{ rows []audit.Row }

var _ audit.Storage = (*memory)(nil)

func (m *memory) Size(context.Context) (int64, error) { return int64(len(m.rows)), nil }

func (m *memory) Rows(_ context.Context, from int64, n int) ([]audit.Row, error) {
	rest := m.rows[min(int(from), len(m.rows)):]
	return rest[:min(n, len(rest))], nil
}

func (m *memory) Append(_ context.Context, sequence int64, row audit.Row) error {
	if sequence != int64(len(m.rows)) {
		return errors.New("not what comes next: the log would fork")
	}
	m.rows = append(m.rows, row)
	return nil
}

// entry returns an entry that is different for each number, at a time of its own.
func entry(n int) audit.Entry {
	return audit.Entry{
		Time:   time.Date(2026, 11, 22, 20, 0, n, 123456789, time.UTC),
		Actor:  audit.Actor{Subject: "ada", Issuer: "https://login.example.org", Method: "oidc", Address: "192.0.2.1"},
		Action: "override.set", Target: fmt.Sprintf("tenant-%d second", n), Tenant: fmt.Sprintf("tenant-%d", n),
		RevisionBefore: uint64(n), RevisionAfter: uint64(n) + 1,
		After: fmt.Appendf(nil, `{"factor": %d}`, n), Reason: "an import",
	}
}

// mutant is a log with one row that is not what it was.
type mutant struct {
	// name says what was done.
	name string
	// rows are those of the log after it.
	rows []audit.Row
	// row is the number that verification has to name.
	row int64
}

// mutants returns every log that one step makes of rows which follow from each other: with one row removed, changed, inserted or moved.
// The removal of the last row is not among them: only a known row tells of it.
func mutants(rows []audit.Row) (all []mutant) {
	for at := range rows {
		row := int64(at)
		if at < len(rows)-1 {
			all = append(all, mutant{fmt.Sprintf("row %d removed", at), slices.Delete(slices.Clone(rows), at, at+1), row})
		}
		changed := audit.Row{Record: bytes.Replace(rows[at].Record, []byte(`"reason":"`), []byte(`"reason":"not `), 1), Hash: rows[at].Hash}
		all = append(all, mutant{fmt.Sprintf("row %d changed", at), replaced(rows, at, changed), row})
		if at < len(rows)-1 {
			// With a hash that fits, it is the next row that does not follow.
			changed.Hash = audit.ChainHash(before(rows, at), changed.Record)
			all = append(all, mutant{fmt.Sprintf("row %d changed with its hash", at), replaced(rows, at, changed), row + 1})
		}
		for to := range len(rows) + 1 {
			// A copy before or behind its original is the same log, of which the second one is too many.
			wrong := int64(to)
			if to == at {
				wrong++
			}
			all = append(all, mutant{fmt.Sprintf("row %d inserted before %d", at, to), slices.Insert(slices.Clone(rows), to, rows[at]), wrong})
		}
		for other := range at {
			swapped := slices.Clone(rows)
			swapped[at], swapped[other] = swapped[other], swapped[at]
			all = append(all, mutant{fmt.Sprintf("rows %d and %d swapped", other, at), swapped, int64(other)})
		}
	}
	return all
}

// replaced returns rows with another one at a place.
func replaced(rows []audit.Row, at int, row audit.Row) []audit.Row {
	changed := slices.Clone(rows)
	changed[at] = row
	return changed
}

// before returns the hash before a row.
func before(rows []audit.Row, at int) audit.Hash {
	if at == 0 {
		return audit.Hash{}
	}
	return rows[at-1].Hash
}
