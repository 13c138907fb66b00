package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/edge"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/example/internal/account"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/policy/redisswitch"
	"github.com/gqlgen-ratelimit/ratelimit/throttle"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// anonymousTier is the tier of callers without a key.
const anonymousTier = "anonymous"

// maxAnswer bounds what one operation is answered. Prices count issues, and not how long they are.
const maxAnswer = 1 << 20

// limiter is the extension with what it stands on, which has to be closed.
type limiter struct {
	extension *ratelimit.Extension
	// throttle is nil where nothing is shed.
	throttle  *throttle.Throttle
	keys      *account.Gate
	door      *edge.Door
	documents *edge.Documents
	close     []func() error
}

// newLimiter builds the extension that the flags ask for. It does not connect to Redis: a server
// starts, and serves by the fail modes of its policy, whether Redis is there or not.
func newLimiter(opts options, logger *slog.Logger) (*limiter, error) {
	l := &limiter{}
	client, err := l.connect(opts.redis)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	// What led to a refusal is a line with the id that its client was given, and so is a limit that is nearly used up. However
	// many requests are refused, the lines are bounded.
	told, err := l.observer(opts.redis, logger)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	source, err := l.policy(opts, client, logger, told)
	if err == nil {
		source, err = l.eased(source, client, logger, told)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	store, err := budgets(client)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if l.throttle, err = shedding(opts, client, logger); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	l.extension = ratelimit.New(ratelimit.Config{
		Store:   store,
		Policy:  source,
		Subject: ratelimit.FirstOf(ratelimit.ByContext(subjectOfAccount), byPeer),
		Proxies: opts.proxies,
		// Every list of this schema has a size; a new one without would be a mistake.
		Pricing:  ratelimit.PricingConfig{Cost: cost.Config{RequireListSizes: true}},
		Response: ratelimit.ResponseConfig{StatusOK: opts.statusOK},
		Answer:   ratelimit.AnswerConfig{MaxBytes: maxAnswer},
		Throttle: ratelimit.ThrottleConfig{Throttle: l.throttle},
		Observe:  ratelimit.ObserveConfig{Logger: logger, Observer: told},
	})
	if err := l.open(opts, logger); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// byPeer says who pays for an operation without a key.
var byPeer = ratelimit.ByPeer(ratelimit.PeerConfig{Tier: anonymousTier})

// open builds what stands before the extension: the front door, the documents that it lets in, and the check of keys.
func (l *limiter) open(opts options, logger *slog.Logger) (err error) {
	proxies := opts.proxies
	l.keys, err = account.NewGate(func(r *http.Request) (ratelimit.Subject, error) {
		return byPeer(r.Context(), &ratelimit.Request{Header: r.Header, Client: clientOf(r, &proxies)})
	})
	if err != nil {
		return err
	}
	l.documents = edge.NewDocuments(cachedBytes)
	l.door, err = edge.New(edge.Config{
		Proxies:   edge.ProxyConfig(opts.proxies),
		Address:   edge.AddressConfig{Limits: arrivals},
		Key:       edge.KeyConfig{Header: account.Header, Limits: arrivals},
		Request:   edge.RequestConfig{MaxBody: maxBody, MaxHeader: maxHeader, BodyTime: readTimeout},
		Documents: edge.DocumentConfig{MaxTokens: maxTokens, Cache: l.documents, Limiter: l.extension},
		Observe:   edge.ObserveConfig{Logger: logger},
		Server:    newServer(context.Background(), nil),
		StatusOK:  opts.statusOK,
	})
	return err
}

// arrivals are what may arrive from one address and with one key, whatever becomes of it: as much as the largest tier of the
// policy may ask for, or the door would take away what a customer has paid for.
var arrivals = []bucket.Limit{
	{Name: "minute", Unit: bucket.Requests, Capacity: 12_000, Period: time.Minute},
	{Name: "bytes", Unit: edge.Bytes, Capacity: 32 << 20, Period: time.Minute},
}

// clientOf is the address of the client, invalid where the listener has none.
func clientOf(r *http.Request, proxies *ratelimit.ProxyConfig) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return proxies.Client(peer.Addr(), r.Header)
}

// subjectOfAccount says who pays for a request with a key. The key was checked before, by
// Gate.Handler or Gate.Init of package account: an unknown one never comes so far.
func subjectOfAccount(ctx context.Context) (ratelimit.Subject, bool) {
	caller, ok := account.FromContext(ctx)
	return ratelimit.Subject{Tenant: caller.Tenant, User: caller.Login}, ok
}

// connect returns a client of the Redis, nil if there are no addresses.
func (l *limiter) connect(addresses []string) (redis.UniversalClient, error) {
	if len(addresses) == 0 {
		return nil, nil
	}
	client, err := redisclient.New(addresses...)
	if err != nil {
		return nil, fmt.Errorf("-redis: %w", err)
	}
	l.close = append(l.close, client.Close)
	return client, nil
}

// budgets returns a store in this process, or in Redis.
func budgets(client redis.UniversalClient) (bucket.Store, error) {
	if client == nil {
		return bucket.NewMemory(bucket.MemoryConfig{}), nil
	}
	return bucket.NewRedis(bucket.RedisConfig{Client: client, Namespace: namespace})
}

// namespace is that of all keys in Redis.
const namespace = "example"

// thisProcess is what this process is called wherever it says what it does: by one name a refusal leads to the revision that its
// instance serves.
var thisProcess = report.InstanceName()

// eased returns the policy with the mode switches of the Redis.
func (l *limiter) eased(source tiers.Source, client redis.UniversalClient, logger *slog.Logger, told event.Observer) (tiers.Source, error) {
	if client == nil {
		return source, nil
	}
	easing := tiers.NewModeSwitch(source)
	follower, err := redisswitch.Follow(redisswitch.FollowerConfig{
		Config: redisswitch.Config{Client: client, Namespace: namespace}, Switch: easing, Observer: told, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	l.close = append(l.close, follower.Close)
	return easing, nil
}

// Close stops following the policy and disconnects: what was opened last is closed first.
func (l *limiter) Close() error {
	var errs []error
	for _, closing := range slices.Backward(l.close) {
		errs = append(errs, closing())
	}
	return errors.Join(errs...)
}
