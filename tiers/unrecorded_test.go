package tiers_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestAPolicySaysWhatRecordsOfPricesCannotJudge(t *testing.T) {
	t.Parallel()
	const document = `
version: 1
default: free
tiers:
  free:
    limits: {minute: {capacity: 100, per: minute}}
    operations:
      Mutation.login: {limits: {account: {unit: requests, capacity: 5, per: minute, by: email}, all: {unit: requests, capacity: 50, per: minute}}}
      Query.export: {instead: true, limits: {rows: {unit: requests, capacity: 5, per: minute}}}
`
	s, err := tiers.Load([]byte(document), 1)
	require.NoError(t, err)
	require.Equal(t, []string{`tiers.free.operations["Mutation.login"].limits.account`, `tiers.free.operations["Query.export"].instead`}, s.Unrecorded())
	require.Equal(t, []bucket.Unit{bucket.Points, bucket.Requests}, s.Counted())

	s, err = tiers.Load([]byte(document+"tenants:\n  acme: {operations: {Mutation.pay: {limits: {card: {unit: requests, capacity: 1, per: minute, by: card}}}}}\n"), 1)
	require.NoError(t, err)
	require.Equal(t, "tenants", s.Unrecorded()[2])
}
