package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// longestTrial is how much time of the processor a document may take before its process ends itself.
	longestTrial = 10 * time.Second
	// population is how many genomes are kept.
	population = 24
	// leastDocument keeps documents out that are nothing but overhead.
	leastDocument = 2 << 10
)

// trials asks a process of this program, and starts another one if a document took too long.
type trials struct {
	ctx     context.Context
	command *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
}

func (t *trials) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	//nolint:gosec // it is this program
	t.command = exec.CommandContext(t.ctx, self)
	t.command.Env = append(os.Environ(), role+"="+roleTrial, "GOMAXPROCS=1")
	t.command.Stderr = os.Stderr
	if t.in, err = t.command.StdinPipe(); err != nil {
		return err
	}
	out, err := t.command.StdoutPipe()
	if err != nil {
		return err
	}
	t.out = json.NewDecoder(out)
	return t.command.Start()
}

func (t *trials) close() {
	if t.command != nil {
		_ = t.in.Close()
		_ = t.command.Process.Kill()
		// It was killed: how it ended says nothing.
		_ = t.command.Wait()
		t.command = nil
	}
}

// ask returns how long a step takes with a document, in nanoseconds, and 0 if the document does not come to it in time. What
// takes longer than longestTrial took that long.
func (t *trials) ask(step int, text string) (float64, error) {
	if t.command == nil {
		if err := t.start(); err != nil {
			return 0, err
		}
	}
	if err := json.NewEncoder(t.in).Encode(trial{Step: step, Text: text}); err != nil {
		return 0, err
	}
	if _, ended, err := t.read(); err != nil || !ended {
		return 0, err
	}
	nanos, ended, err := t.read()
	if !ended {
		nanos = float64(longestTrial)
	}
	return nanos, err
}

// read reads a verdict, and reports whether it came before the process ended itself, because it had taken too long.
func (t *trials) read() (nanos float64, ended bool, err error) {
	var v verdict
	if err := t.out.Decode(&v); err == nil {
		return v.Nanos, true, nil
	}
	var exit *exec.ExitError
	err = t.command.Wait()
	t.command = nil
	switch {
	case t.ctx.Err() != nil:
		return 0, false, t.ctx.Err()
	case errors.As(err, &exit) && exit.ExitCode() == exitLate:
		return 0, false, nil
	default:
		return 0, false, fmt.Errorf("the process that tries documents has ended: %w", err)
	}
}

// candidate is a genome with its document, and what that takes.
type candidate struct {
	*genome

	text  string
	nanos float64
}

func (c *candidate) perByte() float64 { return c.nanos / float64(max(1, len(c.text))) }

// hunt is the search for the document that takes a step longest, for each byte.
type hunt struct {
	*rand.Rand

	trials  *trials
	station *station
	step    int
	best    []candidate
	tried   int
}

// add tries a genome, and keeps it if it is good. A document that is too large is made smaller before.
func (h *hunt) add(d *genome) error {
	const shrinks = 24
	var text string
	for range shrinks {
		text = newAuthor(h.station.schema, d, mostDocument).document()
		if _, err := parse(text); err == nil && len(text) <= mostDocument {
			break
		}
		d.shrink()
	}
	if len(text) < leastDocument || len(text) > mostDocument {
		return nil
	}
	c := candidate{genome: d, text: text}
	// What looks good is looked at again, because other work on the machine only makes it look better.
	for again := range 3 {
		nanos, err := h.trials.ask(h.step, text)
		if err != nil {
			return err
		}
		if again == 0 || nanos < c.nanos {
			c.nanos = nanos
		}
		if c.nanos == 0 || c.nanos >= float64(longestTrial) || len(h.best) > 0 && c.perByte() < h.best[0].perByte() {
			break
		}
	}
	h.tried++
	if c.nanos == 0 || slices.ContainsFunc(h.best, func(b candidate) bool { return b.text == text }) {
		return nil
	}
	h.best = append(h.best, c)
	slices.SortStableFunc(h.best, func(x, y candidate) int { return cmp.Compare(y.perByte(), x.perByte()) })
	h.best = h.best[:min(len(h.best), population)]
	return nil
}

// run searches until the time is over.
func (h *hunt) run(ctx context.Context, long time.Duration) error {
	const stranger = 8
	for _, d := range beginnings() {
		if err := h.add(d); err != nil {
			return err
		}
	}
	for end := time.Now().Add(long); time.Now().Before(end) && ctx.Err() == nil; {
		d := randomGenome(h.Rand)
		if len(h.best) == population && h.IntN(stranger) != 0 {
			// The better half has more children.
			parent := &h.best[min(h.IntN(population), h.IntN(population))]
			d = parent.child(h.Rand, h.best[h.IntN(population)].genome)
		}
		if err := h.add(d); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// searchWorst searches for the worst document of each step, and shows what known families take beside it. With a folder it
// writes the documents there.
func searchWorst(ctx context.Context, long time.Duration, folder string) (string, error) {
	s, err := newStation()
	if err != nil {
		return "", err
	}
	asking := &trials{ctx: ctx}
	defer asking.close()
	known, err := knownFamilies(asking)
	if err != nil {
		return "", err
	}
	found := &table{
		title: "Documents found by search",
		note: fmt.Sprintf("The one that takes each step longest for each of its bytes, among those of %d to %d bytes and at most %d tokens: "+
			"a search of %s for each step.", leastDocument, mostDocument, mostTokens, long/time.Duration(len(steps))),
		header: []string{"", "bytes", "time", "for each byte", "documents tried"},
	}
	for i := range steps {
		fmt.Fprintf(os.Stderr, "\n%s", steps[i].name)
		//nolint:gosec // documents need not be secret
		h := &hunt{Rand: rand.New(rand.NewPCG(uint64(i), 1)), trials: asking, station: s, step: i}
		if err := h.run(ctx, long/time.Duration(len(steps))); err != nil {
			return "", err
		}
		if len(h.best) == 0 {
			continue
		}
		best := &h.best[0]
		found.add(steps[i].name, digits(float64(len(best.text))), took(best.nanos), duration(best.perByte()), digits(float64(h.tried)))
		if folder == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, fileName(steps[i].name)), []byte(best.text), 0o600); err != nil {
			return "", err
		}
	}
	return (&findings{tables: []*table{known, found}}).String(), nil
}

// knownFamilies shows what each step takes with documents that are known to be dear.
func knownFamilies(asking *trials) (*table, error) {
	t := &table{
		title:  "Documents that are known to be dear",
		note:   fmt.Sprintf("Processor time of each step; – where the document is refused before. What takes longer than %s is not waited for.", longestTrial),
		header: []string{"", "bytes"},
	}
	for i := range steps {
		t.header = append(t.header, steps[i].name)
	}
	for _, f := range families {
		text := f.text()
		row := []string{f.name, digits(float64(len(text)))}
		for i := range steps {
			nanos, err := asking.ask(i, text)
			if err != nil {
				return nil, err
			}
			row = append(row, took(nanos))
		}
		t.add(row...)
	}
	return t, nil
}

// took shows the time of a step.
func took(nanos float64) string {
	switch {
	case nanos == 0:
		return "–"
	case nanos >= float64(longestTrial):
		return "more than " + longestTrial.String()
	default:
		return duration(nanos)
	}
}

// fileName is that of the worst document of a step.
func fileName(step string) string {
	words := strings.FieldsFunc(step, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') })
	return strings.Join(words, "_") + ".graphql"
}
