package audittest

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
)

// Mutant is a log with one row that is not what it was.
type Mutant struct {
	// Name says what was done.
	Name string
	// Rows are those of the log after it.
	Rows []audit.Row
	// Row is the number that verification has to name.
	Row int64
}

// Mutants returns every log that one step makes of rows which follow from each other: with one row removed, changed, inserted or moved.
// The removal of the last row is not among them: only a known row tells of it.
func Mutants(rows []audit.Row) (all []Mutant) {
	for at := range rows {
		row := int64(at)
		if at < len(rows)-1 {
			all = append(all, Mutant{fmt.Sprintf("row %d removed", at), slices.Delete(slices.Clone(rows), at, at+1), row})
		}
		changed := audit.Row{Record: bytes.Replace(rows[at].Record, []byte(`"reason":"`), []byte(`"reason":"not `), 1), Hash: rows[at].Hash}
		all = append(all, Mutant{fmt.Sprintf("row %d changed", at), replaced(rows, at, changed), row})
		if at < len(rows)-1 {
			// With a hash that fits, it is the next row that does not follow.
			changed.Hash = audit.ChainHash(before(rows, at), changed.Record)
			all = append(all, Mutant{fmt.Sprintf("row %d changed with its hash", at), replaced(rows, at, changed), row + 1})
		}
		for to := range len(rows) + 1 {
			// A copy before or behind its original is the same log, of which the second one is too many.
			wrong := int64(to)
			if to == at {
				wrong++
			}
			all = append(all, Mutant{fmt.Sprintf("row %d inserted before %d", at, to), slices.Insert(slices.Clone(rows), to, rows[at]), wrong})
		}
		for other := range at {
			swapped := slices.Clone(rows)
			swapped[at], swapped[other] = swapped[other], swapped[at]
			all = append(all, Mutant{fmt.Sprintf("rows %d and %d swapped", other, at), swapped, int64(other)})
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
