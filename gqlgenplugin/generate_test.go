package gqlgenplugin_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAUserCanGenerateServersWithThePlugin does what the README says: a module of its own with a
// generator, which makes a server of a schema that defines nothing, of one that defines @cost itself,
// of a subgraph, and, with the field rateLimit, of one whose query type has another name. Then it asks
// each of them; the first also prices a field by a complexity function.
func TestAUserCanGenerateServersWithThePlugin(t *testing.T) {
	t.Parallel()
	module := shop(t)
	generator := filepath.Join(t.TempDir(), "generate")
	run(t, module, "go", "build", "-o", generator, "./generate")
	for _, server := range []string{"plain", "own", "subgraph"} {
		run(t, filepath.Join(module, server), generator)
	}
	field := filepath.Join(t.TempDir(), "generatefield")
	run(t, module, "go", "build", "-o", field, "./generatefield")
	run(t, filepath.Join(module, "budget"), field)
	answers := map[string]string{}
	for line := range strings.Lines(run(t, module, "go", "run", ".")) {
		if name, answer, ok := strings.Cut(line, " "); ok {
			answers[name] = answer
		}
	}
	wrong := filepath.Join(module, "wrong")
	require.NoError(t, os.CopyFS(wrong, os.DirFS(filepath.Join("testdata", "shop", "plain"))))
	require.NoError(t, os.WriteFile(filepath.Join(wrong, "graph", "wrong.graphqls"),
		[]byte(`extend type Query { dear: Int @cost(weight: "much") }`), 0o600))
	stopped := exec.CommandContext(t.Context(), generator)
	stopped.Dir = wrong
	output, err := stopped.Output()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "a wrong weight stops go generate: %s", output)
	require.Contains(t, string(exit.Stderr), "Query.dear")

	// 1 the query, 2 the call, 4 × (1 the object); a weight of 0.5 for each name.
	require.Contains(t, answers["plain"], `"cost":9,`)
	require.Contains(t, answers["plain"], `"tea"`)
	// The function of a field that has a weight is not used.
	require.Contains(t, answers["directive"], `"cost":9,`)
	// 1 the query, and what the function says of a product with a name, 1.5, rounded up: 3 + 4 × 2.
	require.Contains(t, answers["function"], `"cost":12,`)
	// The same with a weight of 3.
	require.Contains(t, answers["own"], `"cost":19,`)
	require.Contains(t, answers["own"], `"tea"`)
	// The same with none.
	require.Contains(t, answers["subgraph"], `"cost":7,`)
	require.Contains(t, answers["subgraph"], `"tea"`)
	// Beside other fields rateLimit adds nothing, by itself it costs nothing, whatever the query type is called.
	require.Contains(t, answers["beside"], `"rateLimit":{"cost":8,"limit":100,"remaining":92}`)
	require.Contains(t, answers["reading"], `"rateLimit":{"cost":0,"remaining":100}`)
	// The subgraph imports @cost, and has to define the others.
	require.Contains(t, answers["sdl"], "directive @listSize(")
	require.Contains(t, answers["sdl"], "directive @costWhen(")
	require.NotContains(t, answers["sdl"], "directive @cost(")
}

// shop copies the module below testdata into a directory of its own. It has the requirements of this
// repository, so nothing has to be looked up.
func shop(t *testing.T) string {
	t.Helper()
	repository, err := filepath.Abs("..")
	require.NoError(t, err)
	module := t.TempDir()
	require.NoError(t, os.CopyFS(module, os.DirFS(filepath.Join("testdata", "shop"))))
	for _, dir := range []string{module, filepath.Join(module, "generate"), filepath.Join(module, "generatefield")} {
		require.NoError(t, os.Rename(filepath.Join(dir, "main.go.txt"), filepath.Join(dir, "main.go")))
	}
	const path = "github.com/gqlgen-ratelimit/ratelimit"
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(repository, name))
		require.NoError(t, err)
		text := strings.Replace(string(content), "module "+path, "module example.com/shop", 1)
		require.NoError(t, os.WriteFile(filepath.Join(module, name), []byte(text), 0o600))
	}
	run(t, module, "go", "mod", "edit", "-require="+path+"@v0.0.0", "-replace="+path+"="+repository)
	return module
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod "+os.Getenv("GOFLAGS"))
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, output)
	return string(output)
}
