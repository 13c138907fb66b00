package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory/redisdirectory"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisfeed"
)

func TestWithoutAFileTheNewestRevisionInRedisHoldsAndWhatTheDirectoryHasOfATenant(t *testing.T) {
	t.Parallel()
	o, server := newOperator(t)
	delete(o.env, "RATELIMIT_POLICY")
	code, _, stderr := o.run("budget show -tenant hooli -timeout 1m")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "Redis has no policy by the name main")

	client, err := redisclient.Open(server.Addr, redisclient.Config{DialTimeout: patience, SocketTimeout: patience})
	require.NoError(t, err)
	defer func() { _ = client.Close() }()
	document, err := os.ReadFile(livePolicy)
	require.NoError(t, err)
	feed, err := redisfeed.New(redisfeed.Config{Client: client})
	require.NoError(t, err)
	require.NoError(t, feed.Publish(t.Context(), &policy.Revision{
		Number: 7, Document: document, Hash: policy.HashOf(document), Author: "ada", Reason: "ticket 3",
	}, 0))
	records, err := redisdirectory.New(redisdirectory.Config{Client: client})
	require.NoError(t, err)
	_, err = records.Put(t.Context(), "hooli", []byte(`{"tier":"pro","limits":{"minute":{"capacity":77,"per":"minute"}}}`), 0)
	require.NoError(t, err)

	code, stdout, stderr := o.run("policy explain -tenant hooli -timeout 1m")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "policy: revision 7 in Redis")
	require.Contains(t, stdout, "Published by ada: ticket 3")
	require.Contains(t, stdout, "77 points per minute")
	require.Contains(t, stdout, "record.limits.minute")

	code, stdout, stderr = o.run("override set -tenant hooli -limit minute -capacity 99 -for 1h -reason r -timeout 1m")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "77 left of 77 points per minute  ")

	next := strings.Replace(string(document), "capacity: 20000", "capacity: 10000", 1)
	dir := files(t, map[string]string{"next.yaml": next})
	code, stdout, stderr = o.run("policy plan -timeout 1m -new", dir+"/next.yaml")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "From revision 7 in Redis")
	require.Contains(t, stdout, "20000 points per hour, fixed window  →  10000 points per hour, fixed window")
	require.Contains(t, stdout, "2 listed tenants change as their tier does.")
}
