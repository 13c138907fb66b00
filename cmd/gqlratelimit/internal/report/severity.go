package report

import (
	"io"
	"slices"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/doctor"
)

// findings are what an inspection of a schema and an examination of a Redis have in common.
type findings[F any] struct {
	list     []F
	severity func(F) doctor.Severity
	failOn   doctor.Severity
}

// failed says whether anything is as bad as the severity to fail on.
func (f findings[F]) failed() bool {
	return slices.ContainsFunc(f.list, func(finding F) bool { return f.severity(finding).AtLeast(f.failOn) })
}

// write writes each finding as the function does, and a summary.
func (f findings[F]) write(w io.Writer, each func(b *strings.Builder, finding F)) error {
	var b strings.Builder
	counts := map[doctor.Severity]int{}
	for _, finding := range f.list {
		counts[f.severity(finding)]++
		each(&b, finding)
	}
	if len(f.list) > 0 {
		b.WriteString("\n")
	}
	b.WriteString(strings.Join([]string{
		count(counts[doctor.Error], "error"), count(counts[doctor.Warning], "warning"), count(counts[doctor.Note], "note"),
	}, ", ") + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (f findings[F]) writeJSON(w io.Writer) error {
	// No findings are a list as well.
	list := append([]F{}, f.list...)
	return writeJSON(w, struct {
		Version  int  `json:"version"`
		Failed   bool `json:"failed"`
		Findings []F  `json:"findings"`
	}{formatVersion, f.failed(), list})
}

// severity colours a text by how bad it is.
func (s Style) severity(severity doctor.Severity, text string) string {
	switch severity {
	case doctor.Error:
		return s.red(text)
	case doctor.Warning:
		return s.yellow(text)
	default:
		return s.dim(text)
	}
}
