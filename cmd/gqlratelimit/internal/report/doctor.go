package report

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/doctor"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/source"
)

// Examination is what the examination of a client and its servers is reported as.
type Examination struct {
	Findings []doctor.Finding
	// FailOn is the severity from which on a finding makes the examination fail.
	FailOn doctor.Severity
}

// Failed says whether anything is as bad as FailOn.
func (e Examination) Failed() bool {
	return slices.ContainsFunc(e.Findings, func(f doctor.Finding) bool { return f.Severity.AtLeast(e.FailOn) })
}

// Write writes for each finding what was seen, why it matters and what to do, and a summary.
func (e Examination) Write(w io.Writer, style Style) error {
	var b strings.Builder
	counts := map[doctor.Severity]int{}
	if len(e.Findings) > 0 {
		b.WriteString(style.dim("SEVERITY  NODE                   FINDING") + "\n")
	}
	for _, f := range e.Findings {
		counts[f.Severity]++
		severity := padTo(string(f.Severity), 8)
		switch f.Severity {
		case doctor.Error:
			severity = style.red(severity)
		case doctor.Warning:
			severity = style.yellow(severity)
		case doctor.Note:
			severity = style.dim(severity)
		}
		b.WriteString(severity + "  " + padTo(source.Printable(cmp.Or(f.Node, "the client")), 21) + "  " + style.bold(source.Printable(f.Seen)) + " (" + string(f.Code) + ")\n")
		for _, line := range []string{f.Why, "→ " + f.Remedy} {
			b.WriteString(strings.Repeat(" ", 10) + source.Printable(line) + "\n")
		}
	}
	if len(e.Findings) > 0 {
		b.WriteString("\n")
	}
	b.WriteString(strings.Join([]string{
		count(counts[doctor.Error], "error"), count(counts[doctor.Warning], "warning"), count(counts[doctor.Note], "note"),
	}, ", ") + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// padTo fills a text with spaces up to a width.
func padTo(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-len([]rune(text))))
}

// WriteJSON writes the findings as JSON.
func (e Examination) WriteJSON(w io.Writer) error {
	list := e.Findings
	if list == nil {
		list = []doctor.Finding{}
	}
	return writeJSON(w, struct {
		Version  int              `json:"version"`
		Failed   bool             `json:"failed"`
		Findings []doctor.Finding `json:"findings"`
	}{formatVersion, e.Failed(), list})
}
