package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"
)

// The marks between which a report stands in a file.
const (
	reportBegins = "<!-- make bench writes what follows -->\n"
	reportEnds   = "<!-- make bench wrote what precedes -->\n"
)

var errNoMarks = errors.New("the file does not have each mark of a report once, and in their order")

// report makes the sections that are wanted, and writes each as it is made, and the aims last. A file, if one is named, gets
// all of it when it is complete.
func report(ctx context.Context, out io.Writer, e effort, wanted *regexp.Regexp, file string) error {
	before := ""
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if before = string(text); !marked(before) {
			return fmt.Errorf("%s: %w", file, errNoMarks)
		}
	}
	made := machine(ctx)
	if _, err := io.WriteString(out, made); err != nil {
		return err
	}
	begun, loads, all := time.Now(), []string{loadAverage()}, &findings{}
	for _, s := range sections {
		if !wanted.MatchString(s.name) {
			continue
		}
		start := time.Now()
		fmt.Fprintf(os.Stderr, "%s …", s.name)
		found, err := s.run(ctx, e)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Fprintf(os.Stderr, " %.0f s\n", time.Since(start).Seconds())
		if _, err := io.WriteString(out, "\n"+found.String()); err != nil {
			return err
		}
		loads = append(loads, loadAverage())
		all.tables, all.aims = append(all.tables, found.tables...), append(all.aims, found.aims...)
	}
	said := fmt.Sprintf("Made at %s UTC in %.0f minutes, in %d rounds. Processes that ran or waited to run, as an average over a minute, "+
		"before and after each section, those of the benchmark included: %s.\n",
		begun.UTC().Format("2006-01-02 15:04"), time.Since(begun).Minutes(), e.rounds, strings.Join(loads, ", "))
	reached := ""
	if len(all.aims) > 0 {
		reached = "\n" + aimsTable(all.aims).String()
	}
	if _, err := io.WriteString(out, "\n"+said+reached); err != nil || file == "" {
		return err
	}
	//nolint:gosec // a page of the documentation, which everybody reads
	return os.WriteFile(file, []byte(between(before, made+"\n"+said+reached+"\n"+all.String())), 0o644)
}

// marked reports whether a text has the marks of a report.
func marked(text string) bool {
	return strings.Count(text, reportBegins) == 1 && strings.Count(text, reportEnds) == 1 &&
		strings.Index(text, reportBegins) < strings.Index(text, reportEnds)
}

// between returns a marked text with another report.
func between(text, report string) string {
	before, _, _ := strings.Cut(text, reportBegins)
	_, after, _ := strings.Cut(text, reportEnds)
	return before + reportBegins + "\n" + report + "\n" + reportEnds + after
}
