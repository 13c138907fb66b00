package report

import (
	"cmp"
	"io"
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

func (e Examination) findings() findings[doctor.Finding] {
	return findings[doctor.Finding]{e.Findings, func(f doctor.Finding) doctor.Severity { return f.Severity }, e.FailOn}
}

// Failed says whether anything is as bad as FailOn.
func (e Examination) Failed() bool { return e.findings().failed() }

// Write writes for each finding what was seen, why it matters and what to do, and a summary.
func (e Examination) Write(w io.Writer, style Style) error {
	head := style.dim("SEVERITY  NODE                   FINDING") + "\n"
	return e.findings().write(w, func(b *strings.Builder, f doctor.Finding) {
		b.WriteString(head)
		head = ""
		b.WriteString(style.severity(f.Severity, padTo(string(f.Severity), 8)) + "  " +
			padTo(source.Printable(cmp.Or(f.Node, "the client")), 21) + "  " + style.bold(source.Printable(f.Seen)) + " (" + f.Code + ")\n")
		for _, line := range []string{f.Why, "→ " + f.Remedy} {
			b.WriteString(strings.Repeat(" ", 10) + source.Printable(line) + "\n")
		}
	})
}

// padTo fills a text with spaces up to a width.
func padTo(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-len([]rune(text))))
}

// WriteJSON writes the findings as JSON.
func (e Examination) WriteJSON(w io.Writer) error { return e.findings().writeJSON(w) }
