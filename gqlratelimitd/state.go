package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// dataFolder makes the folder for what the daemon keeps, if it is not there. Nobody else may write into one that is: they could put
// something else in the place of the database, or a link in that of a file that is written.
func dataFolder(name string) error {
	if err := os.MkdirAll(name, 0o700); err != nil {
		return fmt.Errorf("the folder for what is kept cannot be made: say another one with -data: %w", err)
	}
	return ownFolder(name)
}

// ownFolder returns an error if others may write into a folder.
func ownFolder(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("others may write into %s (%04o): take a folder of the daemon's own, or chmod go-w it", name, mode)
	}
	return nil
}

// privateKey returns an error if others may read or change a file with a private key. A group may read it: that is how systems that
// manage keys give them to one program.
func privateKey(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o026 != 0 {
		return fmt.Errorf("others may read or change %s (%04o), which is a private key: chmod 600 it", name, mode)
	}
	return nil
}

// secretFile reads a file that nobody else may read, or makes one with a secret.
func secretFile(name string, secret func() (string, error)) (string, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		if text, err = newSecretFile(name, secret); errors.Is(err, fs.ErrExist) {
			// Another daemon has made it meanwhile.
			text, err = os.ReadFile(name)
		}
	}
	if err != nil {
		return "", err
	}
	return string(text), privateKey(name)
}

// newSecretFile makes a secret, and a file with it for the owner alone that is there as a whole or not at all.
func newSecretFile(name string, secret func() (string, error)) ([]byte, error) {
	made, err := secret()
	if err != nil {
		return nil, err
	}
	text := []byte(made + "\n")
	file, err := os.CreateTemp(filepath.Dir(name), ".key-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.Write(text)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return nil, err
	}
	// A link, unlike a rename, replaces no key that somebody else has made.
	if err := os.Link(file.Name(), name); err != nil {
		return nil, err
	}
	// What is made with the key needs it from now on: it has to be there after a loss of power too.
	return text, syncFolder(filepath.Dir(name))
}

// syncFolder has the names in a folder be there after a loss of power too.
func syncFolder(name string) error {
	folder, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// stateFolder is where a program of the user keeps what has to stay: what systemd says, or the base directory specification of freedesktop.
func stateFolder() (string, error) {
	if folder := os.Getenv("STATE_DIRECTORY"); folder != "" {
		first, _, _ := strings.Cut(folder, ":")
		return first, nil
	}
	if folder := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(folder) {
		return filepath.Join(folder, "gqlratelimitd"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("there is no state folder: say one with -data (%w)", err)
	}
	return filepath.Join(home, ".local", "state", "gqlratelimitd"), nil
}
