package policies

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

// sideSuffix is that of the file beside a policy file which says what revision that was. The policy file itself has the exact bytes.
const sideSuffix = ".revision"

// maxSide is how many bytes it has.
const maxSide = 16 << 10

// side is the revision that a policy file was, before somebody has changed it.
type side struct {
	Revision  uint64      `json:"revision"`
	Hash      policy.Hash `json:"hash"`
	Author    string      `json:"author,omitempty"`
	Reason    string      `json:"reason,omitempty"`
	Published time.Time   `json:"published,omitzero"`
}

func sideOf(r *policy.Revision) *side {
	return &side{Revision: r.Number, Hash: r.Hash, Author: r.Author, Reason: r.Reason, Published: r.Published}
}

// says names the revision for people.
func (s *side) says() string {
	text := fmt.Sprintf("revision %d", s.Revision)
	if s.Author != "" {
		text += ", published by " + s.Author
	}
	if !s.Published.IsZero() {
		text += " at " + s.Published.UTC().Format(time.RFC3339)
	}
	if s.Reason != "" {
		text += ": " + s.Reason
	}
	return cli.Plain(text)
}

// readSide reads what stands beside a policy file, nil if nothing does.
func readSide(path string) (*side, error) {
	text, err := cli.ReadFile(path+sideSuffix, maxSide)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // that there is none is an answer
	}
	if err != nil {
		return nil, err
	}
	s := new(side)
	if err := json.Unmarshal(text, s); err != nil || s.Revision == 0 || s.Revision > policy.MaxNumber {
		return nil, fmt.Errorf("%s%s: it is not what policy pull writes: remove it, and pull again", path, sideSuffix)
	}
	return s, nil
}

// write writes what stands beside a policy file.
func (s *side) write(path string) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return replace(path+sideSuffix, append(text, '\n'))
}

// replace puts a file with these bytes in the place of another one, as a whole or not at all.
func replace(path string, content []byte) (err error) {
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	// A link stays, and what it leads to is replaced.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".gqlratelimit-*")
	if err != nil {
		return fmt.Errorf("%s: cannot be written: %w", path, errors.Unwrap(err))
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: cannot be written: %w", path, err)
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.Write(content)
	if err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
