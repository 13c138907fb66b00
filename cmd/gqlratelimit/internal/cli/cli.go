// Package cli is what all sub-commands share: where they write, how they read their arguments, and how they end.
package cli

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// Console is where a sub-command writes, and what it knows of where it runs.
type Console struct {
	Stdout, Stderr io.Writer
	// Getenv reads the environment.
	Getenv func(string) string
}

// FormatVersion is that of all JSON that the command writes. Keys may be added within a version; one
// that is renamed, removed or changes its meaning makes a new version.
const FormatVersion = 1

// WriteJSON writes one object, as all JSON of the command is written.
func (c Console) WriteJSON(value any) error {
	encoder := json.NewEncoder(c.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// Report writes a result as JSON or as text. It returns [ErrFound] if the result is that something was found.
func (c Console) Report(asJSON bool, value any, found bool, text func(io.Writer) error) (err error) {
	if asJSON {
		err = c.WriteJSON(value)
	} else {
		err = text(c.Stdout)
	}
	if err == nil && found {
		return ErrFound
	}
	return err
}

// ErrFound says that the work was done and that something was found, which has been reported.
var ErrFound = errors.New("something was found")

// UsageError is a mistake in the arguments.
type UsageError struct {
	// Command is the sub-command, with its verb. Empty means the one that was called.
	Command string
	Reason  string
}

// Error returns the reason.
func (e *UsageError) Error() string { return e.Reason }

// Usagef returns a [UsageError].
func Usagef(format string, args ...any) error {
	return &UsageError{Reason: fmt.Sprintf(format, args...)}
}

// Paths is a flag that can be given several times.
type Paths []string

// String implements flag.Value.
func (p *Paths) String() string { return strings.Join(*p, " ") }

// Set implements flag.Value.
func (p *Paths) Set(value string) error {
	if value == "" {
		return errors.New("the path is empty")
	}
	*p = append(*p, value)
	return nil
}

// NewFlags returns the flags of a sub-command, whose help is the text and the list of the flags.
func (c Console) NewFlags(name, help string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	// What flag writes by itself stands in the error that it returns.
	flags.SetOutput(io.Discard)
	flags.Usage = func() {
		flags.SetOutput(c.Stdout)
		fmt.Fprint(c.Stdout, strings.TrimPrefix(help, "\n"), "\nFlags:\n\n")
		flags.PrintDefaults()
	}
	return flags
}

// JSONVar adds the flag that asks for JSON.
func JSONVar(flags *flag.FlagSet, to *bool) {
	flags.BoolVar(to, "json", false, "write JSON (docs/reference/command.md describes the format)")
}

// Parse reads flags and other arguments, in any order, and returns the others.
func Parse(flags *flag.FlagSet, args []string) ([]string, error) {
	// flag writes the whole help text below each mistake, which hides it.
	help := flags.Usage
	flags.Usage = func() {}
	var others []string
	for {
		err := flags.Parse(args)
		if errors.Is(err, flag.ErrHelp) {
			help()
			return nil, err
		}
		if err != nil {
			return nil, Usagef("%v", err)
		}
		rest := flags.Args()
		if len(rest) == 0 {
			return others, nil
		}
		if at := len(args) - len(rest); at > 0 && args[at-1] == "--" {
			return append(others, rest...), nil
		}
		others = append(others, rest[0])
		args = rest[1:]
	}
}

// ParseAlone reads the flags of a sub-command that takes no other arguments. What such an argument is, is not repeated: it
// may be an address with a password.
func ParseAlone(flags *flag.FlagSet, args []string) error {
	others, err := Parse(flags, args)
	if err == nil && len(others) > 0 {
		return Usagef("an argument without a flag, where only flags are known: quote a text that has blanks")
	}
	return err
}

// Verb is one of those that a sub-command has.
type Verb struct {
	Name, Summary string
	Run           func(Console, []string) error
}

// RunVerb runs the verb that the arguments name.
func RunVerb(c Console, command, summary string, verbs []Verb, args []string) error {
	if len(args) == 0 {
		return Usagef("say what to do: %s", verbNames(verbs))
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		fmt.Fprintf(c.Stdout, "%s\n\nUsage:\n\n", summary)
		rows := make([][]string, len(verbs))
		for i, verb := range verbs {
			rows[i] = []string{"    gqlratelimit " + command + " " + verb.Name, verb.Summary}
		}
		WriteTable(c.Stdout, rows)
		fmt.Fprintf(c.Stdout, "\nRun gqlratelimit %s VERB -h for the arguments of one.\n", command)
		return flag.ErrHelp
	}
	for _, verb := range verbs {
		if verb.Name != args[0] {
			continue
		}
		err := verb.Run(c, args[1:])
		if usage := (*UsageError)(nil); errors.As(err, &usage) {
			usage.Command = command + " " + verb.Name
		}
		return err
	}
	return Usagef("there is no %.40q: say %s", args[0], verbNames(verbs))
}

func verbNames(verbs []Verb) string {
	var names []string
	for _, verb := range verbs {
		names = append(names, verb.Name)
	}
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
