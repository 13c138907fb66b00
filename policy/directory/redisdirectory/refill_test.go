package redisdirectory_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/policy/directory"
)

// records are n records, before each of which something is called.
func records(n int, before func(i int) error) iter.Seq2[directory.Record, error] {
	return func(yield func(directory.Record, error) bool) {
		for i := range n {
			if !yield(directory.Record{Tenant: fmt.Sprint("tenant-", i), Document: fmt.Appendf(nil, `{"tier":"t%d"}`, i)}, before(i)) {
				return
			}
		}
	}
}

func TestADirectoryThatWasLostIsThereAgainAsAWhole(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redistest.Plain(t, server.Addr)
	source := open(t, client)
	const n = 1000
	written, err := source.Refill(t.Context(), records(n, func(i int) error {
		_, err := source.Tenant(t.Context(), "tenant-0")
		require.ErrorIs(t, err, directory.ErrEmpty, i)
		return nil
	}))
	require.NoError(t, err)
	require.Equal(t, n, written)
	for i := range n {
		r, err := source.Tenant(t.Context(), fmt.Sprint("tenant-", i))
		require.NoError(t, err)
		require.JSONEq(t, fmt.Sprintf(`{"tier":"t%d"}`, i), string(r.Document))
	}
	require.Equal(t, time.Duration(-1), client.PTTL(t.Context(), source.String()+":records").Val())

	// Who knows another history is told of a gap, and of what comes after it.
	page, err := source.Changes(t.Context(), directory.Mark{})
	require.NoError(t, err)
	require.True(t, page.Gap)
	r, err := source.Tenant(t.Context(), "tenant-1")
	require.NoError(t, err)
	revision, err := source.Put(t.Context(), "tenant-1", []byte(`{"tier":"pro"}`), r.Revision)
	require.NoError(t, err)
	page, err = source.Changes(t.Context(), page.Through)
	require.NoError(t, err)
	require.False(t, page.Gap)
	require.Equal(t, []directory.Change{{Tenant: "tenant-1", Revision: revision}}, page.Changes)

	// One that is there is left alone.
	written, err = source.Refill(t.Context(), records(1, func(int) error { return nil }))
	require.NoError(t, err)
	require.Zero(t, written)
	require.Len(t, client.Keys(t.Context(), "*").Val(), 3)
}

func TestADirectoryThatSomebodyWritesMeanwhileOrThatIsLostAgainIsNotReplaced(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redistest.Plain(t, server.Addr)
	source := open(t, client)
	_, err := source.Refill(t.Context(), records(600, func(i int) error {
		if i == 599 {
			return client.FlushAll(t.Context()).Err()
		}
		return nil
	}))
	require.ErrorContains(t, err, "lost some of the records")
	_, err = source.Tenant(t.Context(), "tenant-0")
	require.ErrorIs(t, err, directory.ErrEmpty)
	require.NoError(t, client.FlushAll(t.Context()).Err())

	written, err := source.Refill(t.Context(), records(600, func(i int) error {
		if i == 599 {
			_, err := source.Put(t.Context(), "tenant-0", []byte(`{"tier":"newer"}`), 0)
			return err
		}
		return nil
	}))
	require.NoError(t, err)
	require.Zero(t, written)
	r, err := source.Tenant(t.Context(), "tenant-0")
	require.NoError(t, err)
	require.JSONEq(t, `{"tier":"newer"}`, string(r.Document))
	r, err = source.Tenant(t.Context(), "tenant-1")
	require.NoError(t, err)
	require.Nil(t, r)
}

func TestRecordsThatAreNoneRefillNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redistest.Plain(t, server.Addr)
	source := open(t, client)
	broken := errors.New("broken")
	for _, c := range []struct {
		record directory.Record
		err    error
		want   string
	}{
		{err: broken, want: "broken"},
		{record: directory.Record{Tenant: strings.Repeat("x", 600), Document: []byte("{}")}, want: "600 bytes"},
		{record: directory.Record{Tenant: "acme"}, want: "without a document"},
		{record: directory.Record{Tenant: "acme", Document: []byte("[")}, want: "tiers"},
	} {
		_, err := source.Refill(t.Context(), func(yield func(directory.Record, error) bool) { yield(c.record, c.err) })
		require.ErrorContains(t, err, c.want)
	}
	written, err := source.Refill(t.Context(), records(0, nil))
	require.NoError(t, err)
	require.Zero(t, written)
	require.Empty(t, client.Keys(t.Context(), "*").Val())
}
