package clients_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write what was seen into docs/reports/clients.md, and the snippets into docs/guide/clients.md")

// guide has the snippets, and report the clients with their versions and what they did.
var (
	guide  = filepath.Join("..", "..", "docs", "guide", "clients.md")
	report = filepath.Join("..", "..", "docs", "reports", "clients.md")
)

// writing keeps tests from writing the page at the same time.
var writing sync.Mutex

// clients returns those that are driven.
func clients() []*client {
	all := []*client{
		{name: "hasura/go-graphql-client", setups: []setup{plain, own, advised}, obeys: true, send: sendHasura},
		{name: "Khan/genqlient", setups: []setup{plain, advised}, send: sendGenqlient},
	}
	if *node {
		all = append(
			all,
			&client{name: "@apollo/client", setups: []setup{plain, own, advised}, send: sendNode("apollo")},
			&client{name: "@urql/core", setups: []setup{plain, own, advised}, streams: true, send: sendNode("urql")},
		)
	}
	return all
}

// titles are those of the columns.
var titles = map[setup]string{plain: "as it comes", own: "its own retries, defaults", advised: "as advised here"}

// row is what a client did in one situation.
type row struct {
	title string
	cells []string
}

// whole says whether every cell is known, which it is unless -run left some out.
func whole(rows []row) bool {
	return !slices.ContainsFunc(rows, func(r row) bool { return slices.Contains(r.cells, "") })
}

// table returns what a client did, as Markdown.
func table(c *client, rows []row) string {
	var b strings.Builder
	b.WriteString("| situation |")
	for _, with := range c.setups {
		b.WriteString(" " + titles[with] + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(c.setups)) + "\n")
	for _, r := range rows {
		b.WriteString("| " + r.title + " | " + strings.Join(r.cells, " | ") + " |\n")
	}
	return b.String()
}

// requireInPage checks that a part of a page has the text, or writes it there.
func requireInPage(t *testing.T, page, part, text string) {
	t.Helper()
	writing.Lock()
	defer writing.Unlock()
	data, err := os.ReadFile(page)
	require.NoError(t, err)
	head, rest, found := strings.Cut(string(data), "<!-- "+part+" -->\n")
	require.True(t, found, "the page has no part %q", part)
	was, tail, found := strings.Cut(rest, "<!-- end -->\n")
	require.True(t, found, "part %q has no end", part)
	if *update {
		whole := head + "<!-- " + part + " -->\n" + text + "<!-- end -->\n" + tail
		require.NoError(t, os.WriteFile(page, []byte(whole), 0o600))
		return
	}
	require.Equal(t, was, text, "%s is not what happens: run with -update, and read what changed", page)
}

func TestTheSnippetsOfThePageAreTheCodeThatRan(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"refusal.mjs", "apollo.mjs", "urql.mjs"} {
		code, err := os.ReadFile(filepath.Join("node", name))
		require.NoError(t, err)
		requireInPage(t, guide, "code "+name, "```js\n// "+name+"\n"+string(code)+"```\n")
	}
	code, err := os.ReadFile(filepath.Join("patient", "example_test.go"))
	require.NoError(t, err)
	_, code, found := bytes.Cut(code, []byte("defer api.Close()\n\n"))
	require.True(t, found)
	code, _, found = bytes.Cut(code, []byte("\t// Output:"))
	require.True(t, found)
	requireInPage(t, guide, "code example_test.go", "```go\n"+strings.ReplaceAll("\n"+string(code), "\n\t", "\n")[1:]+"```\n")
}

func TestThePageNamesTheVersionsThatAreDriven(t *testing.T) {
	t.Parallel()
	var installed struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	manifest, err := os.ReadFile(filepath.Join("node", "package.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(manifest, &installed))
	require.NotEmpty(t, installed.Dependencies)
	text, err := os.ReadFile(report)
	require.NoError(t, err)
	for name, version := range installed.Dependencies {
		require.Contains(t, string(text), "`"+name+"` "+version)
	}
	module, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	for _, name := range []string{"hasura/go-graphql-client", "Khan/genqlient"} {
		_, rest, found := strings.Cut(string(module), "github.com/"+name+" ")
		require.True(t, found)
		version, _, _ := strings.Cut(rest, "\n")
		require.Contains(t, string(text), "`"+name+"` "+version)
	}
}
