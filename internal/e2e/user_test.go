package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAUserCanReferenceTheSchemaFromAModuleOfTheirOwn does what the README says: a module of its own
// whose gqlgen.yml references schema.graphqls of this one, code generated from it, a server built on
// that code, and one query to it.
func TestAUserCanReferenceTheSchemaFromAModuleOfTheirOwn(t *testing.T) {
	t.Parallel()
	repository, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	module := t.TempDir()
	require.NoError(t, os.CopyFS(module, os.DirFS(filepath.Join("testdata", "user"))))
	require.NoError(t, os.Rename(filepath.Join(module, "main.go.txt"), filepath.Join(module, "main.go")))
	replaceIn(t, filepath.Join(module, "gqlgen.yml"), "RATELIMIT", repository)

	// The module has the requirements of this one, so nothing has to be looked up.
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(repository, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(module, name), content, 0o600))
	}
	const path = "github.com/gqlgen-ratelimit/ratelimit"
	replaceIn(t, filepath.Join(module, "go.mod"), "module "+path, "module example.com/shop")
	run(t, module, "go", "mod", "edit", "-require="+path+"@v0.0.0", "-replace="+path+"="+repository)

	gqlgen := filepath.Join(t.TempDir(), "gqlgen")
	run(t, repository, "go", "build", "-modfile="+filepath.Join("tools", "gqlgen", "go.mod"),
		"-o", gqlgen, "github.com/99designs/gqlgen")
	run(t, module, gqlgen, "generate")
	answer := run(t, module, "go", "run", ".")
	// 1 the query, 2 the call, 4 × (1 the object); a weight of 0.5 for each name.
	require.Contains(t, answer, `"cost":9`)
	require.Contains(t, answer, `"tea"`)
}

func replaceIn(t *testing.T, path, from, to string) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(content), from, to)), 0o600))
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, output)
	return string(output)
}
