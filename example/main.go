// Command example serves the API of a small code host whose clients pay for what they ask.
//
// Without flags it needs nothing else and listens on 127.0.0.1:8080: GraphiQL at /, the API at
// /query. When it starts it prints a few commands to paste.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/example/internal/codehost"
)

// seed chooses the data. It is fixed, so that what the printed commands return is known.
const seed = 1

// Exit codes of the command.
const (
	exitOK     = 0
	exitFailed = 1
	// exitUsage is what the flag package uses for flags that it cannot read.
	exitUsage = 2
)

// silence is the log of go-redis, which has a line for each attempt to connect: what that means for operations, the limiter says once.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

func main() {
	redis.SetLogger(silence{})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the program at once, whatever is still running.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run serves until ctx is done and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parseOptions(args, stderr)
	if errors.Is(err, errHelp) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "example: %v\n", err)
		return exitUsage
	}
	if err := serve(ctx, opts, stdout, slog.New(slog.NewTextHandler(stderr, nil))); err != nil {
		fmt.Fprintf(stderr, "example: %v\n", err)
		return exitFailed
	}
	return exitOK
}

func serve(ctx context.Context, opts options, stdout io.Writer, logger *slog.Logger) (err error) {
	limits, err := newLimiter(opts, logger) //nolint:contextcheck // the server that the door looks at never runs
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, limits.Close()) }()
	store := codehost.NewStore(codehost.Config{Seed: seed})
	api := newAPI(store, limits)

	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", opts.addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("another program listens on %s: stop it, or choose another address with -addr", opts.addr)
	}
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", opts.addr, err)
	}
	printWelcome(stdout, baseURL(listener.Addr()), opts.policy)
	go limits.extension.Run(context.WithoutCancel(ctx)) // until Shutdown
	limits.shed(context.WithoutCancel(ctx))             // until endShedding
	served := serveUntilDone(ctx, listener, newMux(api, limits), store)
	// No more requests come: what is still to be settled is settled before the connections are closed.
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer stop()
	return errors.Join(served, limits.extension.Shutdown(grace), limits.endShedding(grace))
}

// serveUntilDone serves until ctx is done, then lets what is running end.
func serveUntilDone(ctx context.Context, listener net.Listener, handler http.Handler, store *codehost.Store) error {
	// Requests outlive ctx by design: they end in peace when it is done, and at the latest when
	// serveUntilDone returns. A WebSocket ends only then, because Shutdown does not know of it.
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := newServer(requests, handler)

	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("cannot serve: %w", err)
	case <-ctx.Done():
	}

	// Streams would keep Shutdown waiting: they end first.
	store.Close()
	grace, stop := context.WithTimeout(requests, shutdownTimeout)
	defer stop()
	if err := server.Shutdown(grace); err != nil {
		return fmt.Errorf("requests did not end within %s: %w", shutdownTimeout, err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve: %w", err)
	}
	return nil
}

// baseURL returns the URL under which this machine reaches the address.
func baseURL(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return "http://" + addr.String()
	}
	return fmt.Sprintf("http://127.0.0.1:%d", tcp.Port)
}
