package report

import (
	"io"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/doctor"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/lint"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/source"
)

// Findings is what the inspection of a schema is reported as.
type Findings struct {
	List []lint.Finding
	// FailOn is the severity from which on a finding makes the inspection fail.
	FailOn doctor.Severity
}

func (f Findings) findings() findings[lint.Finding] {
	return findings[lint.Finding]{f.List, func(f lint.Finding) doctor.Severity { return f.Severity }, f.FailOn}
}

// Failed says whether anything is as bad as FailOn.
func (f Findings) Failed() bool { return f.findings().failed() }

// Write writes a line for each finding, in the form that editors and CI systems recognise, and a summary.
func (f Findings) Write(w io.Writer, style Style) error {
	return f.findings().write(w, func(b *strings.Builder, finding lint.Finding) {
		b.WriteString(source.Position(finding.File, finding.Line, finding.Column, ": ") + style.severity(finding.Severity, string(finding.Severity)) +
			": " + style.bold(source.Printable(finding.Coordinate)) + ": " + source.Printable(finding.Message) + " (" + string(finding.Rule) + ")\n")
	})
}

// WriteJSON writes the findings as JSON.
func (f Findings) WriteJSON(w io.Writer) error { return f.findings().writeJSON(w) }
