package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestTheReferenceOfPoliciesIsWhatTheSchemaSays(t *testing.T) {
	t.Parallel()
	want, err := render(tiers.JSONSchema)
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join("..", "reference", "policy.md"))
	require.NoError(t, err)
	require.Equal(t, string(want), string(page), "run make generate")
}

func TestEveryKeyHasAMeaning(t *testing.T) {
	t.Parallel()
	page, err := render(tiers.JSONSchema)
	require.NoError(t, err)
	require.NotContains(t, string(page), "|  |")
}
