package main

import (
	"bytes"
	"fmt"
	"os"
)

// reportKey reads the key by which the instances hash names of users. Without a file there is none.
func reportKey(file string) ([]byte, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	// An editor adds the end of the line.
	key := bytes.TrimRight(text, "\r\n")
	const least, most = 16, 64
	if len(key) < least || len(key) > most {
		return nil, fmt.Errorf("-report-key %s has %d bytes: want %d to %d, those of Config.Key of package report in the instances", file, len(key), least, most)
	}
	return key, nil
}
