package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExplainSaysWhatAllTenantsHaveTogether(t *testing.T) {
	t.Parallel()
	o, _ := newOperator(t)
	dir := files(t, map[string]string{"backstop.yaml": `version: 1
default: free
backstop:
  limits: {second: {capacity: 900, per: second}}
  operations:
    Mutation.checkout: {mode: shadow, limits: {second: {capacity: 50, per: second, unit: requests}}}
tiers:
  free: {limits: {minute: {capacity: 100, per: minute}}}
`})
	o.env["RATELIMIT_POLICY"] = filepath.Join(dir, "backstop.yaml")
	const all = "All tenants together have 900 points per second (enforce), which is taken first: backstop.limits.second\n"
	const ofOne = "All tenants together have 50 requests per second for operation Mutation.checkout (shadow), which is taken first: " +
		"backstop.operations.Mutation.checkout.limits.second\n"
	code, stdout, stderr := o.run("policy explain -tenant acme -timeout 1m")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, all)
	require.Contains(t, stdout, ofOne)
	code, stdout, stderr = o.run("policy explain -tenant acme -operation Query.me -timeout 1m")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, all)
	require.NotContains(t, stdout, "checkout")
	code, stdout, stderr = o.run("policy explain -tenant acme -operation Mutation.checkout -timeout 1m")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, ofOne)
}
