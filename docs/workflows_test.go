package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// workflow is the part of a workflow that says which targets of make it calls.
type workflow struct {
	Jobs map[string]struct {
		Strategy struct {
			Matrix struct {
				Target []string `yaml:"target"`
			} `yaml:"matrix"`
		} `yaml:"strategy"`
		Steps []struct {
			Run string `yaml:"run"`
		} `yaml:"steps"`
	} `yaml:"jobs"`
}

// targets returns those that a workflow calls.
func targets(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".github", "workflows", name))
	require.NoError(t, err)
	var w workflow
	require.NoError(t, yaml.Unmarshal(text, &w))
	job := w.Jobs["make"]
	require.Equal(t, "make ${{ matrix.target }}", job.Steps[len(job.Steps)-1].Run)
	return job.Strategy.Matrix.Target
}

func TestTheWorkflowDoesWhatTheScriptDoes(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
	require.NoError(t, err)
	var steps []string
	for _, m := range regexp.MustCompile(`(?m)^step make (\S+)$`).FindAllStringSubmatch(string(script), -1) {
		steps = append(steps, m[1])
	}
	require.Len(t, steps, strings.Count(string(script), "\nstep "), "every step is a target of make")
	require.Equal(t, steps, targets(t, "ci.yml"))
}

func TestWorkflowsCallTargetsOfMakeThatAreThere(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	for _, name := range []string{"ci.yml", "long.yml"} {
		for _, target := range targets(t, name) {
			require.Contains(t, string(makefile), "\n"+target+":", name)
		}
	}
}
