package bucket_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
	"github.com/gqlgen-ratelimit/ratelimit/lua"
)

// lossyProxy forwards connections to a server. When it is armed it forwards one more call of take.lua
// and, once the server has answered, closes the connection without passing the answer on.
type lossyProxy struct {
	listener net.Listener
	server   string
	armed    atomic.Bool
	lost     atomic.Int64
}

func startLossyProxy(t *testing.T, server string) *lossyProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &lossyProxy{listener: listener, server: server}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(conn)
		}
	}()
	return p
}

func (p *lossyProxy) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	var swallow atomic.Bool
	go func() {
		// When the client goes, so does the connection to the server, which ends the loop below.
		defer func() { _ = server.Close() }()
		buffer := make([]byte, 64<<10)
		for {
			n, err := client.Read(buffer)
			if err != nil {
				return
			}
			if bytes.Contains(buffer[:n], []byte(lua.Take.SHA)) && p.armed.CompareAndSwap(true, false) {
				swallow.Store(true)
			}
			if _, err := server.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		if swallow.Load() {
			p.lost.Add(1)
			return
		}
		if _, err := io.Copy(client, bytes.NewReader(buffer[:n])); err != nil {
			return
		}
	}
}

func TestALostReplyIsAmbiguousUnlessAClaimMakesASecondTrySafe(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	proxy := startLossyProxy(t, redistest.Start(t).Addr)
	client := redis.NewClient(patientOptions(proxy.listener.Addr().String()))
	t.Cleanup(func() { _ = client.Close() })
	store := newRedisStore(t, client)
	buckets := []bucket.Bucket{{Limits: compile(t, bucket.Limit{Name: "year", Capacity: 1000, Refill: 1, Period: time.Hour})}}
	take := bucket.Take{Tenant: "acme", Buckets: buckets, Amounts: points(10)}
	left := func() int64 {
		states, err := store.Peek(ctx, "acme", buckets)
		require.NoError(t, err)
		return states[0].Remaining
	}
	// The server knows the script from now on.
	_, err := store.Take(ctx, take)
	require.NoError(t, err)

	proxy.armed.Store(true)
	_, err = store.Take(ctx, take)
	require.ErrorIs(t, err, bucket.ErrAmbiguous)
	require.EqualValues(t, 1, proxy.lost.Load())
	require.EqualValues(t, 980, left(), "it was charged once, and nothing sent it again")

	proxy.armed.Store(true)
	take.Claim = &idempotency.Claim{Key: "12345678", Attempt: idempotency.NewAttemptID()}
	result, err := store.Take(ctx, take)
	require.NoError(t, err)
	require.EqualValues(t, 2, proxy.lost.Load())
	require.Equal(t, bucket.Admitted, result.Verdict)
	require.False(t, result.Repeat)
	require.EqualValues(t, 10, result.Limits[0].Charged)
	require.EqualValues(t, 970, left(), "the second try was told the first verdict")

	// The receipt of the second try is that of the first charge.
	settled, err := store.Settle(ctx, bucket.Settlement{Receipt: result.Receipt, Actual: points(4), Claim: &bucket.ClaimSettlement{
		Tenant: "acme", Claim: take.Claim, Outcome: idempotency.Done, Answer: []byte("x"),
	}})
	require.NoError(t, err)
	require.True(t, settled.Applied)
	require.EqualValues(t, 976, left())
}
