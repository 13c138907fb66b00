package source

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
)

// Bounds of what is read. They leave room for the largest schemas in public use, which have 5 MB and
// some hundred thousand tokens, and keep a file that is none of ours from filling the memory.
const (
	maxSchemaBytes    = 32 << 20
	maxOperationBytes = 4 << 20
	maxVariablesBytes = 4 << 20
	maxConfigBytes    = 4 << 20
	maxFiles          = 50_000
)

// Files returns the files that the paths name. A directory stands for the files below it whose names
// end in one of the extensions; hidden directories and node_modules are left out, and links to
// directories are not followed. The files of a directory come in the order of their names, and each
// file comes once.
func Files(paths []string, extensions ...string) ([]string, error) {
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, cli.Unreadable(path, err)
		}
		if !info.IsDir() {
			files = append(files, filepath.Clean(path))
			continue
		}
		found, err := below(path, extensions)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, &cli.FileError{File: path, Message: "no file below this directory ends in " + strings.Join(extensions, " or ")}
		}
		files = append(files, found...)
	}
	var once []string
	seen := make(map[string]bool, len(files))
	for _, file := range files {
		if !seen[file] {
			seen[file] = true
			once = append(once, file)
		}
	}
	return once, nil
}

// below walks a directory.
func below(root string, extensions []string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return cli.Unreadable(path, err)
		}
		name := entry.Name()
		if entry.IsDir() {
			if path != root && (name == "node_modules" || strings.HasPrefix(name, ".")) {
				return fs.SkipDir
			}
			return nil
		}
		if !slices.ContainsFunc(extensions, func(ext string) bool { return strings.HasSuffix(name, ext) }) {
			return nil
		}
		// A link to a file counts as the file. What is no file, or is a link to nothing, would block or
		// fail when it is read.
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			return nil //nolint:nilerr // a link to nothing is left out, as an empty directory is
		}
		if len(found) == maxFiles {
			return &cli.FileError{File: root, Message: fmt.Sprintf("more than %d files are below this directory; name a smaller one", maxFiles)}
		}
		found = append(found, path)
		return nil
	})
	return found, err
}

// read returns the text of a file, without a byte order mark.
func read(path string, most int64) (string, error) {
	text, err := cli.ReadFile(path, most)
	if err != nil {
		return "", err
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return "", &cli.FileError{File: path, Message: "the file is not UTF-8 text"}
	}
	return string(text), nil
}

// readDocument returns the text of a file that the parser can be given.
func readDocument(path string, limit int64) (string, error) {
	text, err := read(path, limit)
	if err != nil {
		return "", err
	}
	return text, tooDeep(path, text)
}
