package policies

import (
	"fmt"
	"strconv"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
)

// write says what became of the file.
func (p *push) write() {
	for i := range p.out.Findings {
		fmt.Fprintln(p.Stdout, &p.out.Findings[i])
	}
	file := cli.Plain(p.path)
	switch p.out.Result {
	case pushedPublished:
		fmt.Fprintf(p.Stdout, "%s is %s\n", file, p.out.Revision.says())
	case pushedUnchanged:
		fmt.Fprintf(p.Stdout, "%s is already %s\n", file, p.out.Revision.says())
	case pushedWrong:
		fmt.Fprintln(p.Stdout, "Nothing was published.")
	case pushedConflict:
		p.writeConflict(file)
	}
}

func (p *push) writeConflict(file string) {
	if p.out.Revision == nil {
		fmt.Fprintf(p.Stdout, "Nothing was published: %s is based on revision %d, and the daemon has none.\n", file, p.out.Based)
		return
	}
	based := fmt.Sprintf("revision %d", p.out.Based)
	if p.out.Based == 0 {
		based = "no revision that the daemon knows"
	}
	fmt.Fprintf(p.Stdout, "Nothing was published: %s is based on %s, and the daemon has revision %d.\n\n", file, based, p.out.Revision.Revision)
	rows := [][]string{{"REVISION", "PUBLISHED", "BY", "REASON"}}
	for _, r := range p.out.Meanwhile {
		rows = append(rows, []string{strconv.FormatUint(r.Number, 10), r.Published.UTC().Format(time.RFC3339), r.Author, r.Reason})
	}
	if len(rows) > 1 {
		cli.WriteTable(p.Stdout, rows)
	}
	if len(p.out.Changes) > 0 {
		fmt.Fprintln(p.Stdout)
		writeChanges(p.Console, p.out.Changes, shownChanges)
	}
	fmt.Fprintln(p.Stdout, "\nTo go on, merge both, look at the result, and push it:")
	fmt.Fprintf(p.Stdout, "\n    gqlratelimit policy pull -revision %d theirs.yaml\n", p.out.Revision.Revision)
	if p.out.Based > 0 {
		fmt.Fprintf(p.Stdout, "    gqlratelimit policy pull -revision %d base.yaml\n    git merge-file %s base.yaml theirs.yaml\n", p.out.Based, file)
	}
	fmt.Fprintf(p.Stdout, "    gqlratelimit policy push -expect %d -reason TEXT %s\n", p.out.Revision.Revision, file)
}
