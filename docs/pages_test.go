// Package docs_test holds the pages of the repository to the truth: their links, the files, commands and names of Go
// that they mention, their code and their policies.
package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// root is the repository, as the tests see it.
const root = ".."

// page is a document of the repository.
type page struct {
	// path is its place in the repository, with slashes.
	path, text string
}

// pages returns every page, also those beside the code.
func pages(t *testing.T) []page {
	t.Helper()
	var found []page
	for name, text := range files(t, func(name string) bool { return strings.HasSuffix(name, ".md") }) {
		found = append(found, page{name, text})
	}
	slices.SortFunc(found, func(a, b page) int { return strings.Compare(a.path, b.path) })
	require.NotEmpty(t, found)
	return found
}

// current returns the pages that say what is so now. A changelog also says what was.
func current(t *testing.T) []page {
	t.Helper()
	return slices.DeleteFunc(pages(t), func(p page) bool { return p.path == "CHANGELOG.md" })
}

// files returns the files of the repository that are wanted, by their path with slashes.
func files(t *testing.T, wanted func(name string) bool) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "node_modules"):
			return fs.SkipDir
		case entry.IsDir() || !wanted(name):
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		found[name] = string(text)
		return err
	}))
	return found
}

// blocks returns the fenced blocks of a language.
func (p page) blocks(language string) []string {
	var found []string
	for _, fence := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(p.text, -1) {
		found = append(found, fence[1])
	}
	return found
}

var (
	fence = regexp.MustCompile("(?s)```.*?```")
	span  = regexp.MustCompile("`([^`\n]+)`")
)

// spans returns what stands in backticks within a line.
func (p page) spans() []string {
	var found []string
	for _, s := range span.FindAllStringSubmatch(fence.ReplaceAllString(p.text, ""), -1) {
		found = append(found, s[1])
	}
	return found
}

// code returns all code of a page: blocks, and spans a line each.
func (p page) code() string {
	return strings.Join(append(fence.FindAllString(p.text, -1), p.spans()...), "\n")
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

func TestEveryLinkOfEveryPageLeadsSomewhere(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		for _, l := range link.FindAllStringSubmatch(fence.ReplaceAllString(p.text, ""), -1) {
			target, anchor, _ := strings.Cut(l[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			if target == "" {
				target = p.path
			} else {
				target = path.Join(path.Dir(p.path), target)
			}
			text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(target)))
			if info, missing := os.Stat(filepath.Join(root, filepath.FromSlash(target))); missing != nil || err != nil && !info.IsDir() {
				t.Errorf("%s: the link to %s leads nowhere", p.path, l[1])
			} else if anchor != "" && !slices.Contains(anchors(string(text)), anchor) {
				t.Errorf("%s: %s has no heading #%s", p.path, target, anchor)
			}
		}
	}
}

var heading = regexp.MustCompile(`(?m)^#+ (.*)$`)

// anchors returns those of the headings of a text, as GitHub makes them.
func anchors(text string) []string {
	var found []string
	for _, h := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		title := regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`).ReplaceAllString(strings.ToLower(strings.TrimSpace(h[1])), "$1")
		title = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(title, "")
		found = append(found, strings.ReplaceAll(title, " ", "-"))
	}
	return found
}

func TestEveryPageOfDocsIsInItsIndex(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for _, p := range all {
		index := "docs/README.md"
		if strings.HasPrefix(p.path, "docs/adr/") {
			index = "docs/adr/README.md"
		}
		if p.path == index || !strings.HasPrefix(p.path, "docs/") {
			continue
		}
		at := slices.IndexFunc(all, func(q page) bool { return q.path == index })
		require.GreaterOrEqual(t, at, 0)
		require.Contains(t, all[at].text, "]("+strings.TrimPrefix(p.path, path.Dir(index)+"/")+")", index)
	}
}

func TestDecisionsAreNumberedAndHaveOneForm(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`\A# (\d{4}): .+\n\n## Context\n(?s:.+)\n## Decision\n(?s:.+)\n## Consequences\n(?s:.+)\n## Rejected\n`)
	decisions := 0
	for _, p := range pages(t) {
		number := regexp.MustCompile(`^docs/adr/(\d{4})-`).FindStringSubmatch(p.path)
		if number == nil {
			continue
		}
		decisions++
		require.Equal(t, fmt.Sprintf("%04d", decisions), number[1], "a number is missing before %s", p.path)
		title := form.FindStringSubmatch(p.text)
		require.NotNil(t, title, "%s: the form is Context, Decision, Consequences, Rejected", p.path)
		require.Equal(t, number[1], title[1], p.path)
	}
	require.Positive(t, decisions)
}

func TestEveryTargetOfMakeThatPagesNameIsThere(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	named := 0
	for _, p := range pages(t) {
		for _, m := range regexp.MustCompile(`(?m)(?:^|\$ |&& )make ([a-z][a-z-]*)`).FindAllStringSubmatch(p.code(), -1) {
			named++
			if !strings.Contains(string(makefile), "\n"+m[1]+":") {
				t.Errorf("%s: the Makefile has no target %s", p.path, m[1])
			}
		}
	}
	require.Positive(t, named)
}

func TestEveryFileThatPagesNameIsThere(t *testing.T) {
	t.Parallel()
	top, err := os.ReadDir(root)
	require.NoError(t, err)
	shape := regexp.MustCompile(`^\.?/?([A-Za-z.][\w.-]*)/[\w./*-]+$`)
	named := 0
	for _, p := range current(t) {
		for _, s := range p.spans() {
			m := shape.FindStringSubmatch(s)
			if m == nil || !slices.ContainsFunc(top, func(e fs.DirEntry) bool { return e.IsDir() && e.Name() == m[1] }) {
				continue
			}
			named++
			matches, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(strings.TrimSuffix(s, "/..."))))
			require.NoError(t, err)
			if len(matches) == 0 {
				t.Errorf("%s: there is no %s", p.path, s)
			}
		}
	}
	require.Positive(t, named)
}

// TestEveryPageThatCodeNamesIsThere looks in comments, help texts and scripts.
func TestEveryPageThatCodeNamesIsThere(t *testing.T) {
	t.Parallel()
	named := 0
	for name, text := range files(t, func(name string) bool {
		return slices.Contains([]string{".go", ".lua", ".yml", ".yaml", ".json", ".mjs", ".graphqls", ""}, path.Ext(name)) &&
			path.Dir(name) != "docs"
	}) {
		for _, mentioned := range regexp.MustCompile(`\bdocs/[\w/-]+\.md\b`).FindAllString(text, -1) {
			named++
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(mentioned))); err != nil {
				t.Errorf("%s: there is no %s", name, mentioned)
			}
		}
	}
	require.Positive(t, named)
}

// TestTheTableOfErrorCodesHasThemAllAndIsTheOnlyOne compares it with the constants that servers and clients share.
func TestTheTableOfErrorCodesHasThemAllAndIsTheOnlyOne(t *testing.T) {
	t.Parallel()
	code, err := os.ReadFile(filepath.Join(root, "ratelimitclient", "code.go"))
	require.NoError(t, err)
	want := map[string]string{}
	for _, m := range regexp.MustCompile(`Code\w+ += "(\w+)"`).FindAllStringSubmatch(string(code), -1) {
		want[m[1]] = strconv.Itoa(ratelimitclient.Status(m[1]))
	}
	require.NotEmpty(t, want)
	row := regexp.MustCompile("(?m)^\\| `([A-Z_]+)`(?:, `[A-Z_]+`)* \\| (\\d+) \\|")
	for _, p := range current(t) {
		rows := row.FindAllStringSubmatch(p.text, -1)
		if p.path != "docs/reference/errors.md" {
			require.Empty(t, rows, "%s: link to docs/reference/errors.md", p.path)
			continue
		}
		got := map[string]string{}
		for _, m := range rows {
			got[m[1]] = m[2]
		}
		require.Equal(t, want, got)
	}
}

// TestThePageOnKeysHasThoseOfTheCode compares it with the comment beside the code that makes them.
func TestThePageOnKeysHasThoseOfTheCode(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("reference", "keys.md"))
	require.NoError(t, err)
	keys := 0
	for _, text := range files(t, func(name string) bool {
		return (strings.HasPrefix(name, "bucket/") || strings.HasPrefix(name, "policy/") || strings.HasPrefix(name, "observe/") || strings.HasPrefix(name, "usage/") || strings.HasPrefix(name, "placement/") || strings.HasPrefix(name, "throttle/") || strings.HasPrefix(name, "event/") ||
			strings.HasPrefix(name, "gqlratelimitd/")) && strings.HasSuffix(name, ".go")
	}) {
		for _, m := range regexp.MustCompile(`(?m)^//\t(rl:NAMESPACE\S+)`).FindAllStringSubmatch(text, -1) {
			require.Contains(t, string(page), "| `"+m[1]+"` |")
			keys++
		}
	}
	require.Equal(t, strings.Count(string(page), "| `rl:NAMESPACE"), keys)
}

// TestTheServerOfTheGuideIsTheOneThatIsBuilt compares docs/guide/start.md, and the policy of the README, with the module
// that a test builds and asks.
func TestTheServerOfTheGuideIsTheOneThatIsBuilt(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile(filepath.Join("guide", "start.md"))
	require.NoError(t, err)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	module := filepath.Join(root, "internal", "e2e", "testdata", "user")
	for _, name := range []string{"policy.yaml", "gqlgen.yml", "graph/shop.graphqls"} {
		text, err := os.ReadFile(filepath.Join(module, filepath.FromSlash(name)))
		require.NoError(t, err)
		// gqlgen.yml has a line for the test.
		require.Contains(t, string(guide), strings.TrimSuffix(string(text), "skip_mod_tidy: true\n"), name)
		if name == "policy.yaml" {
			require.Contains(t, string(readme), string(text))
		}
	}
}
