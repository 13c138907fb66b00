package policies

import (
	"fmt"
	"strconv"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
)

// write says what became of the file.
func (p *push) write() {
	for i := range p.out.findings {
		fmt.Fprintln(p.Stdout, &p.out.findings[i])
	}
	file := cli.Plain(p.path)
	switch p.out.result {
	case pushedPublished:
		fmt.Fprintf(p.Stdout, "%s is %s\n", file, p.out.revision.says())
	case pushedUnchanged:
		fmt.Fprintf(p.Stdout, "%s is already %s\n", file, p.out.revision.says())
	case pushedWrong:
		fmt.Fprintln(p.Stdout, "Nothing was published.")
	case pushedConflict:
		p.writeConflict(file)
	}
}

func (p *push) writeConflict(file string) {
	if p.out.revision == nil {
		fmt.Fprintf(p.Stdout, "Nothing was published: %s is based on revision %d, and the daemon has none.\n", file, p.out.based)
		return
	}
	based := fmt.Sprintf("revision %d", p.out.based)
	if p.out.based == 0 {
		based = "no revision that the daemon knows"
	}
	fmt.Fprintf(p.Stdout, "Nothing was published: %s is based on %s, and the daemon has revision %d.\n\n", file, based, p.out.revision.Revision)
	rows := [][]string{{"REVISION", "PUBLISHED", "BY", "REASON"}}
	for _, r := range p.out.meanwhile {
		rows = append(rows, []string{strconv.FormatUint(r.Number, 10), r.Published.UTC().Format(time.RFC3339), r.Author, r.Reason})
	}
	if len(rows) > 1 {
		cli.WriteTable(p.Stdout, rows)
	}
	if len(p.out.changes) > 0 {
		fmt.Fprintln(p.Stdout)
		writeChanges(p.Console, p.out.changes, shownChanges)
	}
	fmt.Fprintln(p.Stdout, "\nTo go on, merge both, look at the result, and push it:")
	fmt.Fprintf(p.Stdout, "\n    gqlratelimit policy pull -revision %d theirs.yaml\n", p.out.revision.Revision)
	if p.out.based > 0 {
		fmt.Fprintf(p.Stdout, "    gqlratelimit policy pull -revision %d base.yaml\n    git merge-file %s base.yaml theirs.yaml\n", p.out.based, file)
	}
	fmt.Fprintf(p.Stdout, "    gqlratelimit policy push -expect %d -reason TEXT %s\n", p.out.revision.Revision, file)
}
