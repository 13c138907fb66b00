package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
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
		if start := strings.IndexByte(line, '{'); start >= 0 && json.Valid([]byte(line[start:])) {
			line = line[:start] + laidOut([]byte(line[start:]), "")
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// laidOut breaks JSON into lines where it is long, and changes nothing else in it.
func laidOut(raw []byte, indent string) string {
	const width = 110
	if len(indent)+len(raw) <= width || raw[0] != '{' && raw[0] != '[' {
		return string(raw)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	// The errors of a decoder are those of JSON that is not valid, and this is.
	_, _ = decoder.Token()
	var b strings.Builder
	b.WriteByte(raw[0])
	for separator := "\n"; decoder.More(); separator = ",\n" {
		b.WriteString(separator + indent + "  ")
		if raw[0] == '{' {
			key, _ := decoder.Token()
			fmt.Fprintf(&b, "%q: ", key)
		}
		var element json.RawMessage
		_ = decoder.Decode(&element)
		b.WriteString(laidOut(element, indent+"  "))
	}
	fmt.Fprintf(&b, "\n%s%c", indent, raw[len(raw)-1])
	return b.String()
}

// refusalIDs are the ids of refusals in answers, which are random.
var refusalIDs = regexp.MustCompile(`("refusalId": ?)"[A-Z2-7]{26}"`)

func withoutIDs(answer string) string {
	return refusalIDs.ReplaceAllString(answer, `$1"(26 letters and digits)"`)
}

// golden compares with testdata/golden/NAME.txt, or rewrites it under -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	got = withoutIDs(got)
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
