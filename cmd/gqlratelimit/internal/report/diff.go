package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/pricing"
)

// maxCauses is how many calls are shown that made an operation dearer.
const maxCauses = 3

// Changes is what a comparison of two schemas is reported as.
type Changes struct {
	List []pricing.Change
	// Broken are the files that cannot be read or parsed, so that nobody knows what stands in them.
	Broken []*cli.FileError
	// MaxRise is the share by which a price may rise.
	MaxRise float64
}

// SortByRise puts broken operations first, then those whose price rises most.
func SortByRise(list []pricing.Change) {
	slices.SortStableFunc(list, func(x, y pricing.Change) int {
		if x.Broken() != y.Broken() {
			if x.Broken() {
				return -1
			}
			return 1
		}
		return cmp.Compare(y.Rise(), x.Rise())
	})
}

// Failed says whether a file is broken, or an operation broke or became too much dearer.
func (c Changes) Failed() bool {
	return len(c.Broken) > 0 || slices.ContainsFunc(c.List, c.failed)
}

func (c Changes) failed(change pricing.Change) bool {
	return change.Broken() || change.Exceeds(c.MaxRise)
}

// Write writes JSON with all operations, or a table of those whose price changes, with the calls that make it rise. It
// returns [cli.ErrFound] if something is wrong.
func (c Changes) Write(to cli.Console, asJSON bool) error {
	return to.Report(asJSON, c.json(), c.Failed(), c.writeTable)
}

func (c Changes) writeTable(w io.Writer) error {
	var b strings.Builder
	row(&b, "OLD", "NEW", "RISE", "OPERATION")
	writeBroken(&b, c.Broken)
	same, unpriced, failed := 0, 0, 0
	for _, change := range c.List {
		if c.failed(change) {
			failed++
		}
		switch {
		case change.Unpriced():
			unpriced++
		case !change.Broken() && change.Old.Points == change.New.Points:
			same++
			continue
		}
		writeChange(&b, change)
	}
	text := cli.Count(len(c.List), "operation") + fmt.Sprintf(", %d with the same price", same) + brokenFiles(c.Broken)
	if unpriced > 0 {
		text += fmt.Sprintf(", %d not valid under the old schema", unpriced)
	}
	if failed > 0 {
		text += fmt.Sprintf(", %d broken or above a rise of %s", failed, cli.Percent(c.MaxRise))
	}
	b.WriteString("\n" + text + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func writeChange(b *strings.Builder, change pricing.Change) {
	price := func(r pricing.Result) string {
		if r.Fatal {
			return "-"
		}
		return points(r.Points)
	}
	rise := ""
	if !change.Old.Fatal && !change.New.Fatal {
		rise = cli.Percent(change.Rise())
		if change.Rise() > 0 {
			rise = "+" + rise
		}
	}
	row(b, price(change.Old), price(change.New), rise, title(change.Old.Operation))
	broken := change.New
	if change.Unpriced() {
		broken = change.Old
	}
	if broken.Fatal || change.Broken() {
		for _, problem := range broken.Problems {
			say(b, "! %v", problem)
		}
	}
	if change.Rise() <= 0 {
		return
	}
	causes := change.Causes()
	for i, cause := range causes {
		if i == maxCauses {
			say(b, "  and %s", cli.Count(len(causes)-i, "other call"))
			break
		}
		fields := strings.Join(cause.Coordinates, ", ")
		row(b, number(cause.Old), number(cause.New), "", "  "+cmp.Or(cause.Path, fields)+"  "+fields)
	}
}

// changesJSON is the JSON of the sub-command diff.
type changesJSON struct {
	Version    int              `json:"version"`
	MaxRise    float64          `json:"maxRise"`
	Failed     bool             `json:"failed"`
	Broken     []*cli.FileError `json:"broken,omitempty"`
	Operations []changeJSON     `json:"operations"`
}

// changeJSON is one operation. Old and New are absent if there is no such price; Rise is absent if
// either is, or if the operation was free.
type changeJSON struct {
	Name     string           `json:"name"`
	File     string           `json:"file"`
	Line     int              `json:"line"`
	Column   int              `json:"column"`
	Old      *int64           `json:"old,omitempty"`
	New      *int64           `json:"new,omitempty"`
	Rise     *float64         `json:"rise,omitempty"`
	Failed   bool             `json:"failed"`
	Causes   []causeJSON      `json:"causes,omitempty"`
	Problems []*cli.FileError `json:"problems,omitempty"`
}

// causeJSON is what at a path adds more than before. Coordinate is the first field; where calls of several object types
// stand there, Coordinates are all.
type causeJSON struct {
	Path        string   `json:"path"`
	Coordinate  string   `json:"coordinate"`
	Coordinates []string `json:"coordinates,omitempty"`
	Old         float64  `json:"old"`
	New         float64  `json:"new"`
}

func (c Changes) json() changesJSON {
	out := changesJSON{Version: cli.FormatVersion, MaxRise: c.MaxRise, Failed: c.Failed(), Broken: c.Broken, Operations: []changeJSON{}}
	for _, change := range c.List {
		op := change.Old.Operation
		one := changeJSON{Name: op.Name, File: op.File, Line: op.Line, Column: op.Column, Failed: c.failed(change)}
		if !change.Old.Fatal {
			one.Old = &change.Old.Points
		}
		if !change.New.Fatal {
			one.New = &change.New.Points
		}
		if rise := change.Rise(); one.Old != nil && one.New != nil && !math.IsInf(rise, 0) {
			one.Rise = &rise
		}
		one.Problems = slices.Concat(change.Old.Problems, change.New.Problems)
		if change.Rise() > 0 {
			for _, cause := range change.Causes() {
				written := causeJSON{Path: cause.Path, Coordinate: cause.Coordinates[0], Old: finite(cause.Old), New: finite(cause.New)}
				if len(cause.Coordinates) > 1 {
					written.Coordinates = cause.Coordinates
				}
				one.Causes = append(one.Causes, written)
			}
		}
		out.Operations = append(out.Operations, one)
	}
	return out
}
