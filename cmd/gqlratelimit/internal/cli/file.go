package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// FileError is a mistake in a file.
type FileError struct {
	// File is the path as it was given or found. It is empty if the mistake is in no file.
	File string `json:"file,omitempty"`
	// Line and Column count from 1. They are 0 if the mistake is that of the whole file.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Message says what is wrong and, where that is not plain, what to do.
	Message string `json:"message"`

	cause error
}

// Unwrap returns what the system said of the file, nil for a mistake in it.
func (p *FileError) Unwrap() error { return p.cause }

// Error returns file:line:column and the message, in the form that editors and CI systems recognise.
func (p *FileError) Error() string {
	return Position(p.File, p.Line, p.Column, ": ") + Plain(p.Message)
}

// Position returns file:line:column and the separator, without what is not known.
func Position(file string, line, column int, separator string) string {
	if file == "" {
		return ""
	}
	file = Plain(file)
	if strings.HasPrefix(strings.TrimSpace(file), "::") {
		// A line that begins so is a command to the runner of GitHub Actions.
		file = "./" + file
	}
	if line > 0 {
		file += ":" + strconv.Itoa(line)
		if column > 0 {
			file += ":" + strconv.Itoa(column)
		}
	}
	return file + separator
}

// ReadFile returns the bytes of a file, or of a pipe. A file that has more than it may, or is neither, is a [FileError].
func ReadFile(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, Unreadable(path, err)
	}
	if !info.Mode().IsRegular() && info.Mode()&(os.ModeNamedPipe|os.ModeCharDevice) == 0 {
		return nil, &FileError{File: path, Message: "cannot be read: it is no file"}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, Unreadable(path, err)
	}
	defer func() { _ = file.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, Unreadable(path, err)
	}
	if int64(len(data)) > most {
		return nil, &FileError{File: path, Message: fmt.Sprintf("the file has more than %d bytes, which is the bound for its kind", most)}
	}
	return data, nil
}

// Unreadable is a [FileError] of what the system said, without naming the path twice.
func Unreadable(path string, err error) error {
	var known *fs.PathError
	if errors.As(err, &known) {
		err = known.Err
	}
	return &FileError{File: path, Message: "cannot be read: " + err.Error(), cause: err}
}
