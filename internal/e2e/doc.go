// Package e2e has no code of its own. Its tests drive whole servers from outside, as clients do: over every transport
// of gqlgen, under every outcome. testdata/golden holds what the clients were answered.
package e2e
