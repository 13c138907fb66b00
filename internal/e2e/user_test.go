package e2e_test

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAStrangerHasLimitsWithWhatTheREADMESays builds the server of docs/guide/start.md, which the README quotes: a
// module of its own with a copy of schema.graphqls, code that gqlgen makes from it, and a policy file.
func TestAStrangerHasLimitsWithWhatTheREADMESays(t *testing.T) {
	t.Parallel()
	module := strangersModule(t)
	server := filepath.Join(t.TempDir(), "shop")
	run(t, module, "go", "build", "-o", server, ".")

	shop := exec.CommandContext(t.Context(), server, "-addr", "127.0.0.1:0")
	shop.Dir = module
	stdout, err := shop.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, shop.Start())
	url, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{}}
	post := func(query string) (status int, header http.Header, body string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.TrimSpace(url),
			strings.NewReader(`{"query": "`+query+`"}`))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("X-API-Key", "key-of-acme")
		response, err := client.Do(request)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response.StatusCode, response.Header, string(text)
	}

	// 1 the query, 2 the call, 1 the connection, 4 × (1 the object, 0.5 the name).
	status, _, body := post("{ products(first: 4) { nodes { name } } }")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, `"cost":10`)
	require.Contains(t, body, `"tea"`)
	status, _, body = post("{ products(first: 1000) { nodes { name } } }")
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, body, `"COST_LIMIT_EXCEEDED"`)
	for range 2 {
		status, _, _ = post("{ products(first: 300) { nodes { name } } }")
		require.Equal(t, http.StatusOK, status)
	}
	status, header, body := post("{ products(first: 300) { nodes { name } } }")
	require.Equal(t, http.StatusTooManyRequests, status)
	require.NotEmpty(t, header.Get("Retry-After"))
	require.Contains(t, body, `"RATE_LIMITED"`)

	client.CloseIdleConnections()
	require.NoError(t, shop.Process.Signal(syscall.SIGTERM))
	require.NoError(t, shop.Wait(), "it ends in order")
}

// strangersModule makes the module, with the requirements of this one, so that nothing has to be looked up.
func strangersModule(t *testing.T) string {
	t.Helper()
	repository, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	module := t.TempDir()
	require.NoError(t, os.CopyFS(module, os.DirFS(filepath.Join("testdata", "user"))))
	require.NoError(t, os.Rename(filepath.Join(module, "main.go.txt"), filepath.Join(module, "main.go")))
	for from, to := range map[string]string{
		"go.mod": "go.mod", "go.sum": "go.sum", "schema.graphqls": filepath.Join("graph", "cost.graphqls"),
	} {
		content, err := os.ReadFile(filepath.Join(repository, from))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(module, to), content, 0o600))
	}
	const path = "github.com/gqlgen-ratelimit/ratelimit"
	run(t, module, "go", "mod", "edit", "-module=example.com/shop", "-require="+path+"@v0.0.0", "-replace="+path+"="+repository)

	gqlgen := filepath.Join(t.TempDir(), "gqlgen")
	run(t, repository, "go", "build", "-modfile="+filepath.Join("tools", "gqlgen", "go.mod"),
		"-o", gqlgen, "github.com/99designs/gqlgen")
	run(t, module, gqlgen, "generate")
	return module
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod "+os.Getenv("GOFLAGS"))
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s %v: %s", name, args, output)
}
