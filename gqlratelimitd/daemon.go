package main

import (
	"context"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/announce"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/collect"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/dispatch"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/relay"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/web"
)

// daemon is the running program. It owns every goroutine: serve starts and ends them.
type daemon struct {
	options *options
	console console
	log     *slog.Logger

	db            *store.DB
	control       *control.Control
	authenticator *access.Authenticator
	redis         redis.UniversalClient
	// budgets are those of the instances, nil without a Redis.
	budgets *bucket.Redis
	// relay is nil without a Redis.
	relay *relay.Relay
	// announcer tells changes as events, through a client of its own. Both are nil where nobody is to be told.
	announcer *announce.Announcer
	stream    redis.UniversalClient
	// collector brings usage into the database, by counts. Both are nil without a Redis.
	collector *collect.Collector
	counts    *bucket.Redis
	// dispatcher brings events to endpoints of tenants. It is nil without a Redis.
	dispatcher *dispatch.Dispatcher
	web        *web.Server
	server     *http.Server
	metrics    *metric.MeterProvider
	registry   *prometheus.Registry
	listener   net.Listener
	// token is the text of the bootstrap token, empty if there is none.
	token string
}

// open opens everything, and serves nothing yet. After an error nothing is open.
func open(ctx context.Context, o *options, c console) (_ *daemon, err error) {
	d := &daemon{options: o, console: c, log: slog.New(slog.NewTextHandler(c.err, nil))}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close(context.WithoutCancel(ctx)))
		}
	}()
	for _, note := range o.notes {
		d.log.Warn(note)
	}
	if err := dataFolder(o.Data); err != nil {
		return nil, err
	}
	// Who starts it twice is told so before anything is touched.
	if d.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen); err != nil {
		return nil, err
	}
	if d.db, err = store.Open(ctx, store.Config{URL: o.databaseURL(), Now: o.now}); err != nil {
		return nil, err
	}
	for _, part := range []func(context.Context) error{
		d.openMetrics, d.openRedis, d.openControl, d.openRelay, d.openAnnouncer, d.openCollector, d.openDispatcher, d.openRefusals, d.openWeb,
	} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	if d.token, err = d.control.Bootstrap(ctx, false); err != nil {
		return nil, err
	}
	return d, nil
}

// openMetrics makes what metrics are read from.
func (d *daemon) openMetrics(context.Context) error {
	d.registry = prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(d.registry))
	if err != nil {
		return err
	}
	d.metrics = metric.NewMeterProvider(metric.WithReader(reader))
	return nil
}

func (d *daemon) openControl(context.Context) error {
	keys, err := d.options.policyKeys()
	if err != nil {
		return err
	}
	cfg := control.Config{Store: d.db, Keys: keys, Changed: d.changed, Now: d.options.now}
	if err := d.connect(&cfg); err != nil {
		return err
	}
	if err := d.openWebhooks(&cfg); err != nil {
		return err
	}
	if d.control, err = control.New(cfg); err != nil {
		return err
	}
	auth := d.options.auth(d.control.TokenStore())
	auth.Logger = d.log
	d.authenticator, err = access.NewAuthenticator(auth)
	return err
}

// changed tells those who bring changes further. Nothing is changed before they are there.
func (d *daemon) changed() {
	d.web.Wake()
	if d.relay != nil {
		d.relay.Wake()
	}
	if d.announcer != nil {
		d.announcer.Wake()
	}
}

// openRedis makes a client of the Redis of the instances, which may be away.
func (d *daemon) openRedis(context.Context) (err error) {
	if d.options.Redis == "" {
		return nil
	}
	if d.redis, err = redisclient.Open(d.options.Redis, redisclient.Config{}); err != nil {
		return err
	}
	d.budgets, err = bucket.NewRedis(bucket.RedisConfig{Client: d.redis, Namespace: d.options.Namespace})
	return err
}

func (d *daemon) openRelay(context.Context) (err error) {
	if d.redis == nil {
		return nil
	}
	//nolint:contextcheck // That its counters are 0 is of no request.
	d.relay, err = relay.New(relay.Config{
		Store: d.db, Client: d.redis, Namespace: d.options.Namespace, Logger: d.log, MeterProvider: d.metrics,
	})
	return err
}

func (d *daemon) openWeb(context.Context) (err error) {
	cfg := web.Config{
		Control: d.control, Authenticator: d.authenticator, Logger: d.log, MeterProvider: d.metrics, Address: d.options.client,
		Metrics: promhttp.HandlerFor(d.registry, promhttp.HandlerOpts{}),
	}
	if d.relay != nil {
		cfg.Relay = func() error {
			if s := d.relay.Status(); s.Failure != "" {
				return errors.New(s.Failure)
			}
			return nil
		}
	}
	if d.web, err = web.New(cfg); err != nil {
		return err
	}
	d.server = &http.Server{
		Handler: d.web, ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		ErrorLog: log.New(&sparing{log: d.log}, "", 0), HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ConnState: web.Track,
	}
	return nil
}

// Bounds of connections: who sends or reads slowly is cut.
const (
	headerTime = 5 * time.Second
	readTime   = 30 * time.Second
	// writeTime is more than the longest wait for a change.
	writeTime = 90 * time.Second
	idleTime  = 2 * time.Minute
	maxHeader = 32 << 10
	// maxStreams is how many requests one connection of HTTP/2 has under way.
	maxStreams = 64
	// patience is for how long the daemon waits for requests that are under way when it ends.
	patience = 15 * time.Second
)

// serve serves until the context ends, and then ends everything in order: first those who wait, then requests that are under way, then what
// carries their changes further.
func (d *daemon) serve(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, d.close(context.WithoutCancel(ctx))) }()
	config, err := d.tls()
	if err != nil {
		return err
	}
	d.server.TLSConfig = config
	var behind, front sync.WaitGroup
	// What is behind requests outlives them.
	background, end := context.WithCancel(context.WithoutCancel(ctx))
	defer behind.Wait()
	defer end()
	d.work(background, &behind)
	defer front.Wait()
	serving, stop := context.WithCancel(ctx)
	defer stop()
	front.Go(func() { d.web.Run(serving) })
	failed := make(chan error, 1)
	front.Go(func() {
		defer stop()
		listener := web.Bound(d.listener, web.ListenConfig{Proxy: d.options.proxies().Trusts})
		if config != nil {
			failed <- d.server.ServeTLS(listener, "", "")
		} else {
			failed <- d.server.Serve(listener)
		}
	})
	d.welcome()
	<-serving.Done()
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := d.server.Shutdown(patient); err != nil {
		d.log.Warn("requests were cut off", "error", err)
		_ = d.server.Close()
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// work starts what is behind requests. Each ends with the context.
func (d *daemon) work(ctx context.Context, behind *sync.WaitGroup) {
	run := func(name string, run func(context.Context) error) {
		behind.Go(func() {
			if err := run(ctx); err != nil {
				d.log.Error("the "+name+" has ended", "error", err)
			}
		})
	}
	if d.relay != nil {
		run("relay", d.relay.Run)
	}
	if d.announcer != nil {
		run("announcer", d.announcer.Run)
	}
	if d.collector != nil {
		run("collector", d.collector.Run)
	}
	if d.dispatcher != nil {
		run("dispatcher", d.dispatcher.Run)
	}
}

// close closes what is open.
func (d *daemon) close(ctx context.Context) error {
	var errs []error
	if d.listener != nil {
		// The server may have closed it.
		_ = d.listener.Close()
	}
	if d.authenticator != nil {
		d.authenticator.Close()
	}
	if d.metrics != nil {
		errs = append(errs, d.metrics.Shutdown(ctx))
	}
	if d.budgets != nil {
		errs = append(errs, d.budgets.Close())
	}
	if d.counts != nil {
		errs = append(errs, d.counts.Close())
	}
	if d.redis != nil {
		errs = append(errs, d.redis.Close())
	}
	if d.stream != nil {
		errs = append(errs, d.stream.Close())
	}
	if d.db != nil {
		errs = append(errs, d.db.Close())
	}
	return errors.Join(errs...)
}
