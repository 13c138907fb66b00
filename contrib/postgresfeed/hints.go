package postgresfeed

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Channels of the notifications about all policies and all directories of a database. Their payload says which.
const (
	hintChannel   = "ratelimit_policy"
	changeChannel = "ratelimit_directory"
)

const (
	// probePatience is how long a notification to oneself may take, and probes how often it is tried.
	probePatience = time.Second
	probes        = 3
	// pingEvery is for how long a subscription is silent before it is asked whether it stands, and pingPatience for how long it
	// may think about that.
	pingEvery    = 5 * time.Second
	pingPatience = 5 * time.Second
	// probeAgain is after which time one who hears nothing listens once more.
	probeAgain = 5 * time.Minute
)

// ErrSwallowed says that the server takes LISTEN, and that notifications do not arrive: a pooler in transaction or statement mode
// stands between. Set [Config.Listen] to the address of the server itself, or the pooler to session mode.
var ErrSwallowed = errors.New("postgresfeed: notifications do not arrive: a pooler in transaction mode may stand between; " +
	"set Config.Listen to the server itself")

// errSilent says that nobody has asked for hints.
var errSilent = errors.New("postgresfeed: nobody listens yet")

// hints hears notifications.
type hints struct {
	pool   *pgxpool.Pool
	listen *pgx.ConnConfig
	log    *slog.Logger
	// channel is that of the notifications, and payload is what those say that are meant. about is what the log calls them.
	channel, payload, about string

	mu sync.Mutex
	// err is why there are none, and told says that the log has heard of it.
	err  error
	told bool
}

func newHints(pool *pgxpool.Pool, listen *pgx.ConnConfig, log *slog.Logger, channel, payload, about string) *hints {
	if log == nil {
		log = slog.Default()
	}
	return &hints{pool: pool, listen: listen, log: log, channel: channel, payload: payload, about: about, err: errSilent}
}

func (h *hints) failure() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// note notes whether there are hints. The log hears once that they are swallowed, and once that they arrive again.
func (h *hints) note(ctx context.Context, err error) {
	h.mu.Lock()
	h.err = err
	swallowed := errors.Is(err, ErrSwallowed)
	say := swallowed && !h.told || err == nil && h.told
	if say {
		h.told = swallowed
	}
	h.mu.Unlock()
	switch {
	case say && swallowed:
		h.log.WarnContext(ctx, h.about+" are polled for, and not notified", slog.String("of", h.payload), slog.String("error", err.Error()))
	case say:
		h.log.InfoContext(ctx, h.about+" are notified again", slog.String("of", h.payload))
	}
}

// stand listens until that ends. While notifications are swallowed it waits.
func (h *hints) stand(ctx context.Context, wake func()) error {
	err := h.hear(ctx, wake)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	h.note(ctx, err)
	if errors.Is(err, ErrSwallowed) {
		timer := time.NewTimer(probeAgain)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	}
	return err
}

// listener is a connection that listens.
type listener struct {
	hints *hints
	conn  *pgx.Conn
	wake  func()
	// channel is its own, for the probe, and nonce is what is expected there.
	channel, nonce string
	// heard says that the nonce has come.
	heard bool
}

// hear listens until that ends.
func (h *hints) hear(ctx context.Context, wake func()) error {
	conn, err := h.connect(ctx)
	if err != nil {
		return wrap(err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}()
	l := &listener{hints: h, conn: conn, wake: wake, channel: h.channel + "_probe_" + rand.Text(), nonce: rand.Text()}
	for _, channel := range []string{h.channel, l.channel} {
		if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{channel}.Sanitize(), pgx.QueryExecModeSimpleProtocol); err != nil {
			return wrap(err)
		}
	}
	// What was published before comes with the next question, whatever the probe says.
	wake()
	if err := l.probe(ctx); err != nil {
		return err
	}
	h.note(ctx, nil)
	for {
		err := l.wait(ctx, pingEvery)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			if err := l.ping(ctx); err != nil {
				return wrap(err)
			}
		default:
			return wrap(err)
		}
	}
}

// connect returns a connection of one's own.
func (h *hints) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if h.listen != nil {
		return pgx.ConnectConfig(ctx, h.listen.Copy())
	}
	conn, err := h.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return conn.Hijack(), nil
}

// probe sends notifications over another connection until one arrives.
func (l *listener) probe(ctx context.Context) error {
	for range probes {
		if err := l.send(ctx); err != nil {
			return wrap(err)
		}
		deadline := time.Now().Add(probePatience)
		for !l.heard {
			err := l.wait(ctx, time.Until(deadline))
			if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
				break
			}
			if err != nil {
				return wrap(err)
			}
		}
		if l.heard {
			return nil
		}
	}
	return ErrSwallowed
}

func (l *listener) send(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := l.hints.pool.Exec(ctx, "SELECT pg_notify($1::text, $2::text)", pgx.QueryExecModeExec, l.channel, l.nonce)
	return err
}

// wait takes one notification. Anybody in the database can send one.
func (l *listener) wait(ctx context.Context, most time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	n, err := l.conn.WaitForNotification(ctx)
	if err != nil {
		return err
	}
	switch {
	case n.Channel == l.channel && n.Payload == l.nonce:
		l.heard = true
	case n.Channel == l.hints.channel && n.Payload == l.hints.payload:
		l.wake()
	}
	return nil
}

// ping asks whether the connection stands.
func (l *listener) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pingPatience)
	defer cancel()
	if _, err := l.conn.Exec(ctx, "SELECT 1", pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("the connection that listens: %w", err)
	}
	return nil
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("postgresfeed: %w", err)
}
