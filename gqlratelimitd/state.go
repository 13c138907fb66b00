package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
)

// auditKey reads the key of the audit log, or makes one.
func auditKey(name, log string) (*audit.Key, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		if text, err = newAuditKey(name, log); errors.Is(err, fs.ErrExist) {
			// Another daemon has made it meanwhile.
			text, err = os.ReadFile(name)
		}
	}
	if err != nil {
		return nil, err
	}
	key, err := audit.ParseKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return key, nil
}

// newAuditKey makes a key, and a file with it for the owner alone that is there as a whole or not at all.
func newAuditKey(name, log string) ([]byte, error) {
	private, _, err := audit.NewKey(log)
	if err != nil {
		return nil, err
	}
	text := []byte(private + "\n")
	file, err := os.CreateTemp(filepath.Dir(name), ".audit-key-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.Write(text)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return nil, err
	}
	// A link, unlike a rename, replaces no key that somebody else has made.
	return text, os.Link(file.Name(), name)
}

// checkpointLine is a checkpoint in the file that is kept outside of the database, a line each: as in an export.
type checkpointLine struct {
	Checkpoint string `json:"checkpoint"`
}

// keepCheckpoint appends a checkpoint to a file.
func keepCheckpoint(file *os.File, signed []byte) error {
	line, err := json.Marshal(checkpointLine{string(signed)})
	if err != nil {
		return err
	}
	if _, err := file.Write(append(line, '\n')); err != nil {
		return err
	}
	return file.Sync()
}
