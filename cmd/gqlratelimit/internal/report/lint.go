package report

import (
	"io"
	"slices"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/lint"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/source"
)

// Findings is what the inspection of a schema is reported as.
type Findings struct {
	List []lint.Finding
	// FailOn is the severity from which on a finding makes the inspection fail.
	FailOn lint.Severity
}

// Failed says whether anything is as bad as FailOn.
func (f Findings) Failed() bool {
	return slices.ContainsFunc(f.List, func(finding lint.Finding) bool { return finding.Severity.AtLeast(f.FailOn) })
}

// Write writes a line for each finding, in the form that editors and CI systems recognise, and a summary.
func (f Findings) Write(w io.Writer, style Style) error {
	var b strings.Builder
	for _, finding := range f.List {
		severity := string(finding.Severity)
		switch finding.Severity {
		case lint.Error:
			severity = style.red(severity)
		case lint.Warning:
			severity = style.yellow(severity)
		case lint.Note:
			severity = style.dim(severity)
		}
		b.WriteString(source.Position(finding.File, finding.Line, finding.Column, ": ") + severity + ": " +
			style.bold(source.Printable(finding.Coordinate)) + ": " + source.Printable(finding.Message) + " (" + string(finding.Rule) + ")\n")
	}
	if len(f.List) > 0 {
		b.WriteString("\n")
	}
	b.WriteString(strings.Join([]string{
		count(lint.Count(f.List, lint.Error), "error"),
		count(lint.Count(f.List, lint.Warning), "warning"),
		count(lint.Count(f.List, lint.Note), "note"),
	}, ", ") + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteJSON writes the findings as JSON.
func (f Findings) WriteJSON(w io.Writer) error {
	list := f.List
	if list == nil {
		list = []lint.Finding{}
	}
	return writeJSON(w, struct {
		Version  int            `json:"version"`
		Failed   bool           `json:"failed"`
		Findings []lint.Finding `json:"findings"`
	}{formatVersion, f.Failed(), list})
}
