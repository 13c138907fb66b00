package natsstream_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/natsstream"
	"github.com/gqlgen-ratelimit/ratelimit/contrib/natsstream/internal/natstest"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/event/streamtest"
)

var (
	refusals = flag.Int("refusals", 5000, "how many refusals a flood has")
	quiet    = slog.New(slog.NewTextHandler(io.Discard, nil))
	// program is a NATS, built once.
	program string
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "natsstream")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if program, err = natstest.Build(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// launch starts a server, which ends with its test.
func launch(t *testing.T) *natstest.Server {
	t.Helper()
	server, err := natstest.Launch(program, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(server.Kill)
	return server
}

func connect(t *testing.T, server *natstest.Server) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect("nats://"+server.Addr, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return conn
}

func open(t *testing.T, cfg natsstream.Config) *natsstream.Sink {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	sink, err := natsstream.New(cfg)
	require.NoError(t, err)
	return sink
}

// streams returns what asks a server about its streams.
func streams(t *testing.T, conn *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	return js
}

// read returns all events of all streams, each in its order.
func read(addr string) (all []stream.Envelope, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := nats.Connect("nats://" + addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	names := js.StreamNames(ctx)
	for name := range names.Name() {
		s, err := js.Stream(ctx, name)
		if err != nil {
			return nil, err
		}
		consumer, err := s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
		if err != nil {
			return nil, err
		}
		for left := s.CachedInfo().State.Msgs; left > 0; left-- {
			m, err := consumer.Next(jetstream.FetchMaxWait(10 * time.Second))
			if err != nil {
				return nil, err
			}
			e, err := natsstream.Decode(m.Subject(), m.Headers(), m.Data())
			if err != nil {
				return nil, err
			}
			all = append(all, e)
		}
	}
	return all, names.Err()
}

func harness(t *testing.T) streamtest.Harness {
	t.Helper()
	server := launch(t)
	ok := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	return streamtest.Harness{
		Sink:     open(t, natsstream.Config{Conn: connect(t, server), MaxEvent: 64 << 10}),
		Read:     func() ([]stream.Envelope, error) { return read(server.Addr) },
		Freeze:   func() { ok(server.Freeze()) },
		Thaw:     func() { ok(server.Thaw()) },
		Restart:  server.Restart,
		TooLarge: 64 << 10,
	}
}

func TestANATSIsABroker(t *testing.T) {
	t.Parallel()
	streamtest.Run(t, harness)
}

func TestAFloodOfRefusalsThroughANATSThatIsKilledAndFrozenIsThereOrCounted(t *testing.T) {
	t.Parallel()
	h := harness(t)
	kill := func() {
		if err := h.Restart(); err != nil {
			t.Error(err)
		}
	}
	freeze := func() {
		h.Freeze()
		<-time.After(1500 * time.Millisecond) // longer than a batch may take
		h.Thaw()
	}
	result := streamtest.Flood(t, h, *refusals, kill, freeze, kill, freeze)
	t.Log(result)
	require.Zero(t, result.Duplicates, "JetStream knows the ids of the last ten minutes")
}

func TestAStreamThatIsNotThereIsMadeForSevenDays(t *testing.T) {
	t.Parallel()
	conn := connect(t, launch(t))
	js := streams(t, conn)
	require.Nil(t, open(t, natsstream.Config{Conn: conn}).Send(t.Context(), []stream.Envelope{streamtest.Envelope("acme", 0)}))
	s, err := js.Stream(t.Context(), "ratelimit_denials")
	require.NoError(t, err)
	cfg := s.CachedInfo().Config
	require.Equal(t, 7*24*time.Hour, cfg.MaxAge)
	require.Equal(t, 10*time.Minute, cfg.Duplicates)
	require.EqualValues(t, 1<<30, cfg.MaxBytes)

	sink := open(t, natsstream.Config{Conn: conn, Streams: natsstream.StreamConfig{Retention: time.Minute, MaxBytes: 1 << 20}})
	other := streamtest.Envelope("acme", 1)
	other.Topic = "other"
	require.Nil(t, sink.Send(t.Context(), []stream.Envelope{other, streamtest.Envelope("acme", 2)}))
	s, err = js.Stream(t.Context(), "other")
	require.NoError(t, err)
	require.Equal(t, time.Minute, s.CachedInfo().Config.MaxAge)
	s, err = js.Stream(t.Context(), "ratelimit_denials")
	require.NoError(t, err)
	require.Equal(t, 7*24*time.Hour, s.CachedInfo().Config.MaxAge, "it was there")
}

func TestAStreamThatCannotBeMadeIsSaidAndItsEventsWait(t *testing.T) {
	t.Parallel()
	conn := connect(t, launch(t))
	js := streams(t, conn)
	var log bytes.Buffer
	// A single server keeps no three replicas.
	for name, cfg := range map[string]natsstream.StreamConfig{"impossible": {Replicas: 3}, "left": {Leave: true}} {
		sink := open(t, natsstream.Config{Conn: conn, Streams: cfg, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		e := streamtest.Envelope("acme", 0)
		e.Topic = name
		for range 2 {
			require.NotNil(t, sink.Send(t.Context(), []stream.Envelope{e}))
		}
		_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "made-" + name, Subjects: []string{name + ".>"}})
		require.NoError(t, err)
		require.Nil(t, sink.Send(t.Context(), []stream.Envelope{e}))
	}
	require.Equal(t, 1, strings.Count(log.String(), "cannot be made"), log.String())
}

func TestOneThatTheServerFindsTooLargeCostsNoOther(t *testing.T) {
	t.Parallel()
	conn := connect(t, launch(t)) // It takes 128 KB.
	js := streams(t, conn)
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "small", Subjects: []string{"ratelimit.thresholds.>"}, MaxMsgSize: 10_000})
	require.NoError(t, err)
	batch := make([]stream.Envelope, 6)
	for i := range batch {
		batch[i] = streamtest.Envelope("acme", i)
		if i >= 3 {
			batch[i].Topic = "ratelimit.thresholds"
		}
	}
	batch[1].Data = json.RawMessage(`"` + strings.Repeat("x", 200_000) + `"`)
	batch[4].Data = json.RawMessage(`"` + strings.Repeat("x", 20_000) + `"`)
	errs := open(t, natsstream.Config{Conn: conn}).Send(t.Context(), batch)
	require.Len(t, errs, 6)
	for i, err := range errs {
		if i == 1 || i == 4 {
			require.ErrorIs(t, err, stream.ErrTooLarge)
		} else {
			require.NoError(t, err)
		}
	}
}

// TestAnyClientOfTheProtocolReadsAStream reads with bytes on a socket, because no package has the command of NATS.
func TestAnyClientOfTheProtocolReadsAStream(t *testing.T) {
	t.Parallel()
	server := launch(t)
	sink := open(t, natsstream.Config{Conn: connect(t, server)})
	require.Nil(t, sink.Send(t.Context(), []stream.Envelope{streamtest.Envelope("Zoë & Söhne.de", 0)}))
	conn, err := net.Dial("tcp", server.Addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	lines := bufio.NewReader(conn)
	line := func() string {
		text, err := lines.ReadString('\n')
		require.NoError(t, err)
		return strings.TrimSpace(text)
	}
	require.Contains(t, line(), "INFO {")
	_, err = io.WriteString(conn, "CONNECT {\"verbose\":false}\r\nSUB here 1\r\n"+
		"PUB $JS.API.STREAM.MSG.GET.ratelimit_denials here 9\r\n{\"seq\":1}\r\n")
	require.NoError(t, err)
	require.Contains(t, line(), "MSG here 1 ")
	var answer struct {
		Message struct {
			Subject, Hdrs, Data string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(line()), &answer))
	require.Equal(t, "ratelimit.denials.Zo%C3%AB%20%26%20S%C3%B6hne%2Ede", answer.Message.Subject)
	data, err := base64.StdEncoding.DecodeString(answer.Message.Data)
	require.NoError(t, err)
	require.Equal(t, `{"n":0}`, string(data))
	headers, err := base64.StdEncoding.DecodeString(answer.Message.Hdrs)
	require.NoError(t, err)
	for _, header := range []string{
		"ce-specversion: 1.0", "ce-id: id-0", "ce-source: ratelimit:main/web-1", "ce-type: ratelimit.decision.refused.v1", "ce-subject: Zo%C3%AB%20&%20S%C3%B6hne.de",
		"ce-time: 2026-09-21T14:13:20Z", "ce-sequence: 00000000000000000001", "content-type: application/json", "Nats-Msg-Id: id-0",
	} {
		require.Contains(t, string(headers), header+"\r\n")
	}
}

func TestMessagesOfOthersAreNoEvents(t *testing.T) {
	t.Parallel()
	for _, header := range []nats.Header{
		nil,
		{"ce-id": {"1"}},
		{"ce-specversion": {"1.0"}},
		{"ce-specversion": {"0.3"}, "ce-id": {"1"}},
		{"ce-specversion": {"1.0"}, "ce-id": {"1", "2"}},
		{"ce-specversion": {"1.0"}, "ce-id": {"%zz"}},
	} {
		_, err := natsstream.Decode("ratelimit.denials.acme", header, []byte("{}"))
		require.ErrorContains(t, err, "ratelimit.denials.acme")
	}
	_, err := natsstream.Decode("", nats.Header{"Ce-Specversion": {"1.0"}, "Ce-Id": {"1"}}, []byte("{"))
	require.ErrorContains(t, err, "no CloudEvent")
}

func TestMistakesOfTheConfigurationAreReportedAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := natsstream.New(natsstream.Config{MaxEvent: 1, Streams: natsstream.StreamConfig{Replicas: 9, Retention: 1, MaxBytes: 1}})
	for _, part := range []string{
		"Config.Conn is nil", "Config.MaxEvent is 1", "Config.Streams.Replicas is 9", "Config.Streams.Retention is 1ns", "Config.Streams.MaxBytes is 1",
	} {
		require.ErrorContains(t, err, part)
	}
}
