package ratelimit_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// transcript writes a reply as it stands in a golden file. What differs from run to run is left out.
func (r reply) transcript() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s\n", r.Status, http.StatusText(r.Status))
	var names []string
	for name := range r.Header {
		if name != "Date" && name != "Content-Length" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(r.Header.Values(name), ", "))
	}
	b.WriteString("\n" + indented(r.Body))
	return b.String()
}

// indented lays JSON out, line by line for streams, and leaves everything else as it is.
func indented(body string) string {
	var b strings.Builder
	lines := bufio.NewScanner(strings.NewReader(body))
	for lines.Scan() {
		line := lines.Text()
		start := strings.IndexByte(line, '{')
		var laidOut bytes.Buffer
		if start >= 0 && json.Indent(&laidOut, []byte(line[start:]), "", "  ") == nil {
			line = line[:start] + laidOut.String()
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// golden compares with testdata/golden/NAME.txt, or rewrites it under -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run go test -update once to record it")
	require.Equal(t, string(want), got)
}
