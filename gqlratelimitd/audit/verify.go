package audit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/mod/sumdb/tlog"
)

// VerifyConfig says what an export is verified against.
type VerifyConfig struct {
	// Keys are public keys of the log, which were not learnt from the export: the one of its beginning. Keys that follow are named in
	// checkpoints. A key that followed one that was lost has to be here too.
	Keys []string
	// Kept are signed checkpoints of the log that were kept elsewhere. The log has to begin with what each of them says. Without one, Verify
	// finds what was changed by those who do not have the key, and cannot find that those who have it wrote another log.
	Kept [][]byte
	// Each is told each entry, in order, before it is known whether what follows is true. An error ends Verify and is its
	// error. Nil is told nothing.
	Each func(*Entry) error
}

// Report is what an export was verified to be.
type Report struct {
	// Name is the name of the log.
	Name string
	// Newest is the last checkpoint: all entries up to its size are as they were when it was signed.
	Newest Checkpoint
	// Checkpoints is how many there are, and Kept how many of those that were kept elsewhere are of this log.
	Checkpoints, Kept int
	// Key is the public key that signed the last checkpoint.
	Key string
}

// Verify reads an export and returns what it was verified to be. It needs nothing but the export, a key, and checkpoints that were kept. It
// holds one record at a time. The error is a [*TamperError] where something was changed, removed, inserted or reordered, which
// says between which entries: what lies before was covered by a checkpoint that holds.
//
// An export that ends with an earlier checkpoint is a log of then. Only a checkpoint that was kept tells that it was longer.
func Verify(export io.Reader, cfg VerifyConfig) (*Report, error) {
	v := verifier{
		cfg: cfg, lines: bufio.NewReaderSize(export, MaxRecord+1),
		keys: slices.Clone(cfg.Keys), roots: make(map[int64]tlog.Hash, len(cfg.Kept)),
	}
	for _, signed := range cfg.Kept {
		c, err := readCheckpoint(signed)
		if err != nil {
			return nil, fmt.Errorf("audit: a checkpoint that was kept: %w", err)
		}
		v.roots[c.Size] = tlog.Hash{}
	}
	if err := v.header(); err != nil {
		return nil, err
	}
	for {
		line, err := v.line()
		if errors.Is(err, io.EOF) {
			return v.end()
		}
		if err == nil {
			err = v.read(line)
		}
		if err != nil {
			return nil, err
		}
	}
}

// verifier verifies an export.
type verifier struct {
	cfg   VerifyConfig
	lines *bufio.Reader
	tree  frontier
	// roots are those at the sizes of checkpoints that were kept.
	roots  map[int64]tlog.Hash
	report Report
	// keys are all that have signed, or may: those that were given and those that checkpoints named. next is the one that the last
	// checkpoint named, and retired those that may not sign any more.
	keys    []string
	next    string
	retired []string
}

// line returns the next line without its end. It holds until the next one is read.
func (v *verifier) line() ([]byte, error) {
	line, err := v.lines.ReadSlice('\n')
	switch {
	case errors.Is(err, io.EOF) && len(line) == 0:
		return nil, io.EOF
	case errors.Is(err, io.EOF):
		return nil, v.tampered("the export ends within a line")
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, v.tampered("a line is longer than any of an export")
	case err != nil:
		return nil, fmt.Errorf("audit: read the export: %w", err)
	}
	return line[:len(line)-1], nil
}

// tampered is an error about what follows the last checkpoint that holds, up to the line that is read.
func (v *verifier) tampered(problem string) error {
	return &TamperError{From: v.report.Newest.Size, To: v.tree.size + 1, Problem: problem}
}

// header reads the first line.
func (v *verifier) header() error {
	const before = `{"format":"` + exportFormat + `","log":"`
	line, err := v.line()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	name, ok := bytes.CutPrefix(line, []byte(before))
	// A name of a log has no character that JSON escapes; of another one no checkpoint will be.
	v.report.Name = string(bytes.TrimSuffix(name, []byte(`"}`)))
	if !ok || !bytes.Equal(headerOf(v.report.Name), line) {
		return errors.New("audit: not an export of an audit log")
	}
	return nil
}

// read reads the line of an entry or of a checkpoint.
func (v *verifier) read(line []byte) error {
	if bytes.HasPrefix(line, []byte(checkpointMark)) {
		return v.checkpoint(line)
	}
	e, problem := readAt(line, v.tree.size)
	if problem != "" {
		return v.tampered(problem)
	}
	v.tree.add(line)
	v.note()
	if v.cfg.Each != nil {
		return v.cfg.Each(e)
	}
	return nil
}

// note notes the root where a checkpoint was kept.
func (v *verifier) note() {
	if _, ok := v.roots[v.tree.size]; ok {
		v.roots[v.tree.size] = v.tree.root()
	}
}

// checkpoint reads the line of a checkpoint.
func (v *verifier) checkpoint(line []byte) error {
	signed, err := readLine(line)
	if err != nil {
		return v.tampered("a line with a checkpoint that is none")
	}
	c, key, err := openCheckpoint(signed, v.signers())
	switch {
	case errors.Is(err, errSignature):
		return v.tampered("a checkpoint that no key has signed which was given or named by the one before")
	case errors.Is(err, errNoCheckpoint):
		return v.tampered("a line with a checkpoint that is none")
	case err != nil:
		return err
	case c.Name != v.report.Name:
		return v.tampered("a checkpoint of another log")
	case c.Size != v.tree.size || c.Root != v.tree.root():
		// All lines before this one are entries. Right after another checkpoint it may itself be what does not belong here.
		from := v.report.Newest.Size
		return &TamperError{From: from, To: max(from+1, v.tree.size), Problem: fmt.Sprintf("the next checkpoint is of %d other ones", c.Size)}
	}
	if v.next != "" && v.next != key {
		// It was lost: another that was given signs in its place.
		v.retired = append(v.retired, v.next)
	}
	if c.Key != key {
		v.retired = append(v.retired, key)
	}
	v.report.Newest, v.report.Key, v.next = *c, key, c.Key
	v.report.Checkpoints++
	if !slices.Contains(v.keys, c.Key) {
		v.keys = append(v.keys, c.Key)
	}
	return nil
}

// signers are the keys that may sign the next checkpoint: the one that was named, else those that were given and are not retired.
func (v *verifier) signers() []string {
	var keys []string
	if v.next != "" {
		keys = append(keys, v.next)
	}
	for _, key := range v.cfg.Keys {
		if key != v.next && !slices.Contains(v.retired, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// end verifies what was kept.
func (v *verifier) end() (*Report, error) {
	if v.report.Checkpoints == 0 || v.report.Newest.Size != v.tree.size {
		return nil, v.tampered("the export does not end with a checkpoint: it was cut")
	}
	for _, signed := range v.cfg.Kept {
		c, _, err := openCheckpoint(signed, v.keys)
		switch {
		case errors.Is(err, errSignature) || err == nil && c.Name != v.report.Name:
			return nil, errors.New("audit: a checkpoint that was kept is not of this log: no key of the log has signed it")
		case err != nil:
			return nil, err
		case c.Size > v.tree.size:
			return nil, &TamperError{From: v.tree.size, To: c.Size, Problem: "a checkpoint that was kept covers them, and they are not here"}
		case c.Root != v.roots[c.Size]:
			return nil, &TamperError{From: 0, To: c.Size, Problem: "a checkpoint that was kept is of other entries: the log was written anew"}
		}
		v.report.Kept++
	}
	return &v.report, nil
}
