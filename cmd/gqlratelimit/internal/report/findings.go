package report

import (
	"errors"
	"flag"
	"io"
	"slices"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/doctor"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
)

// Findings are those of an inspection of a schema, or of an examination of a Redis.
type Findings[F any] struct {
	List []F
	// FailOn is the severity from which on a finding makes the command fail.
	FailOn doctor.Severity
	// Head is a line above them, without which there is none.
	Head string
	// Severity is that of a finding, and Text the lines that say it.
	Severity func(F) doctor.Severity
	Text     func(F) string
}

// Register adds the flag -fail-on.
func (f *Findings[F]) Register(flags *flag.FlagSet) {
	f.FailOn = doctor.Warning
	flags.Func("fail-on", "fail on findings of this `severity`: error, warning or note (default warning)", func(text string) error {
		f.FailOn = doctor.Severity(text)
		if !slices.Contains([]doctor.Severity{doctor.Error, doctor.Warning, doctor.Note}, f.FailOn) {
			return errors.New("it is none of error, warning and note")
		}
		return nil
	})
}

// Write writes them as JSON, or each in its own lines and a summary. It returns [cli.ErrFound] if one is as bad as FailOn.
func (f *Findings[F]) Write(c cli.Console, asJSON bool) error {
	out := struct {
		Version  int  `json:"version"`
		Failed   bool `json:"failed"`
		Findings []F  `json:"findings"`
	}{cli.FormatVersion, false, append([]F{}, f.List...)}
	counts := map[doctor.Severity]int{}
	for _, finding := range f.List {
		counts[f.Severity(finding)]++
		out.Failed = out.Failed || f.Severity(finding).AtLeast(f.FailOn)
	}
	return c.Report(asJSON, out, out.Failed, func(w io.Writer) error {
		var b strings.Builder
		if f.Head != "" && len(f.List) > 0 {
			b.WriteString(f.Head + "\n")
		}
		for _, finding := range f.List {
			b.WriteString(f.Text(finding))
		}
		if len(f.List) > 0 {
			b.WriteString("\n")
		}
		b.WriteString(strings.Join([]string{
			cli.Count(counts[doctor.Error], "error"), cli.Count(counts[doctor.Warning], "warning"), cli.Count(counts[doctor.Note], "note"),
		}, ", ") + "\n")
		_, err := io.WriteString(w, b.String())
		return err
	})
}
