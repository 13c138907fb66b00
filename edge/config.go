package edge

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/jsonvalue"
	"github.com/gqlgen-ratelimit/ratelimit/event"
	"github.com/gqlgen-ratelimit/ratelimit/internal/inbound"
)

// Bytes is the unit of limits that count the bytes of requests: of the request line, the headers and the body, and on a
// WebSocket those that the client sends. A value of JSON counts as 16 more, and a frame of a WebSocket as 128. Limits of a door are in it or in bucket.Requests.
const Bytes bucket.Unit = "bytes"

// Config says how a [Door] works. The zero value is a door for an API of the public Internet. Every mistake in it is
// reported, all at once, by [New].
type Config struct {
	// Proxies are what stands between clients and the server. The zero value trusts nobody's word on addresses.
	Proxies ProxyConfig
	// Address bounds what comes from one address.
	Address AddressConfig
	// Key bounds what comes with one API key.
	Key KeyConfig
	// Request bounds a single request.
	Request RequestConfig
	// Connection bounds a WebSocket.
	Connection ConnectionConfig
	// Documents bounds what a document takes before it has a price.
	Documents DocumentConfig
	// Observe says who is told of refusals.
	Observe ObserveConfig

	// MaxBudgets is how many addresses, sites, keys and connections have budgets at once. When there is no more room, those
	// that are nearest to full give way, and are full when they come again. Zero means 100 000: some 25 MB. It has to
	// be well above what is in use at once.
	MaxBudgets int
	// Server is the server in which the door stands. New checks that it bounds headers and how long it waits for them, which
	// no handler can: it is a mistake if it does not. Nil means that this is looked at with the first request, and
	// only logged.
	Server *http.Server
	// StatusOK answers refusals with the status 200.
	StatusOK bool
	// Clock tells the time of the limits, for tests. It may be called by several goroutines at once. Nil means the system's
	// clock. Bodies have to arrive by that of the system.
	Clock func() time.Time
}

// ProxyConfig says which proxies stand in front of the server, as ratelimit.ProxyConfig does: edge.ProxyConfig(proxies)
// is the same for both.
type ProxyConfig struct {
	// Trusted are the networks whose word on the address of a client is taken.
	Trusted []netip.Prefix
	// Header is the one in which trusted proxies append addresses. Empty means X-Forwarded-For.
	Header string
}

// AddressConfig bounds what comes from one address. Where the address is not known, as on a Unix socket without a proxy
// that is trusted, it bounds nothing, which is logged once.
type AddressConfig struct {
	// IPv6Client is how many bits of an IPv6 address make one client, 1 to 128. Zero means 64: a host has a /64 to itself. An
	// address that leads to an IPv4 address counts as that, as in ratelimit.ByPeer.
	IPv6Client int
	// IPv6Site is how many bits make the site that the client is in, at most as many as IPv6Client. Zero means 56, or
	// IPv6Client if that is less: a household has a /56 or more, and any tunnel gives a /48. [None] means no level above
	// the client. An IPv4 address has none.
	IPv6Site int
	// Limits are those of each client. Nil means 1200 requests and 32 MiB a minute; empty means none.
	Limits []bucket.Limit
	// SiteLimits are those of each site. Nil means 16 times Limits.
	SiteLimits []bucket.Limit
	// UnderWay is how many requests one client has under way at once, streams included, and a site four times as many. One
	// client, and one site, never have more than are still free of Request.UnderWay, so that nobody takes the last
	// ones. Zero means 128, [None] no bound.
	UnderWay int
	// Connections is the same of WebSockets. Zero means 64, [None] no bound.
	Connections int
	// Operations is the same of what runs on WebSockets, on all of a client together. Each holds its document, and the
	// extensions that were sent with it. Zero means 256, [None] no bound.
	Operations int
	// Values is how many values of JSON the variables and extensions of all operations of a client have that are under way,
	// subscriptions included, and of a site four times as many. 64 bytes of strings count as one. Zero means 100 000,
	// [None] no bound.
	Values int
}

// KeyConfig bounds what comes with one API key, whether or not it is a good one. A key is known by a hash with a secret of the process,
// and stands in no log and no metric. The zero value knows no keys.
type KeyConfig struct {
	// Header is the one that carries the key, such as X-Api-Key or Authorization. Its first value is the key, byte for byte.
	Header string
	// Find returns the key of a request, empty if there is none, in the place of Header. It has to be quick, and may be called by
	// several goroutines at once. One that panics has found none.
	Find func(*http.Request) string
	// Limits are those of each key. Nil means 1200 requests and 32 MiB a minute; empty means none.
	Limits []bucket.Limit
}

// RequestConfig bounds a single request.
type RequestConfig struct {
	// MaxBody is how many bytes a body has at most, of whatever method, with or without a Content-Length. Zero means 128
	// KiB. It is read before the server sees the request, and so held in memory.
	MaxBody int64
	// BodyTime is how long the body may take from when its headers have come, whatever the request accepts. Zero means ten
	// seconds.
	BodyTime time.Duration
	// MaxUpload and UploadTime are the same of a body of multipart/form-data, whose files are not held but passed on as they
	// come. The operation and the map before them have MaxBody bytes together. Zero means MaxBody and BodyTime.
	MaxUpload  int64
	UploadTime time.Duration
	// MaxQuery is how many bytes the query string of a URL has at most, in which a GET has its document. Zero means 16
	// KiB.
	MaxQuery int
	// MaxHeader is how many bytes all headers and the URL have at most. Zero means 32 KiB. The server has read them by then:
	// set http.Server.MaxHeaderBytes to as much.
	MaxHeader int
	// UnderWay is how many requests of all addresses are under way at once, streams included. Zero means 2048, [None] no
	// bound.
	UnderWay int
	// MaxValues is how many values of JSON a body has at most, objects, lists and all that is in them, and the variables of an
	// operation however they come. They are counted before a body is decoded, which takes up to half a microsecond for each.
	// What has more is answered with QUERY_LIMIT_EXCEEDED. Zero means 10 000, [None] no bound.
	MaxValues int
	// Values is how many values of JSON the variables and extensions of all operations have that are under way, subscriptions
	// included. 64 bytes of strings count as one. Decoded, one takes up to 400 bytes. Zero means 500 000, [None] no bound.
	Values int
}

// ConnectionConfig bounds a WebSocket.
type ConnectionConfig struct {
	// Limits are those of the operations of one connection, in requests. Nil means 100 at once and 20 more a second; empty
	// means none.
	Limits []bucket.Limit
	// Operations is how many run on a connection at once, subscriptions included. Zero means 64, [None] no bound.
	Operations int
	// All is how many WebSockets all addresses have at once. Zero means 4096, [None] no bound.
	All int
	// AllOperations is how many operations run on all of them at once. Zero means 8192, [None] no bound.
	AllOperations int
	// MaxInit is how many bytes a client sends at most before the server has answered it: connection_init, and what it sends
	// without waiting for the answer. gqlgen keeps the payload for as long as the connection, in 50 times as many
	// bytes. Zero means 16 KiB, [None] no bound.
	MaxInit int
}

// ObserveConfig says who is told of refusals. The zero value is the default in each field.
type ObserveConfig struct {
	// Logger is told what operators have to know. Nil means slog.Default().
	Logger *slog.Logger
	// MeterProvider takes the metrics. Nil means the global provider.
	MeterProvider metric.MeterProvider
	// Observer is told of refusals, as [event.RefusedAtDoor]: the first of each layer of an address in each minute, as
	// far as Refusals has room. It is called in the request, so that it must not block. Nil means that they are lines of Logger.
	Observer event.Observer
	// Refusals is how many are told in each second. Zero means 10, [None] that none is told. Metrics count all.
	Refusals int
}

// The defaults.
const (
	defaultRequests    = 1200
	defaultBytes       = 32 << 20
	siteFactor         = 16
	defaultUnderWay    = 128
	defaultConnections = 64
	defaultBody        = 128 << 10
	defaultBodyTime    = 10 * time.Second
	defaultQuery       = 16 << 10
	defaultHeader      = 32 << 10
	defaultAllUnderWay = 2048
	defaultOperations  = 64
	defaultAll         = 4096
	defaultRunning     = 256
	defaultAllRunning  = 8192
	defaultInit        = 16 << 10
	defaultMaxValues   = 10_000
	defaultHeld        = 100_000
	defaultAllHeld     = 500_000
	defaultBudgets     = 100_000
	defaultRefusals    = 10
)

func defaultLimits() []bucket.Limit {
	return []bucket.Limit{
		{Name: "minute", Unit: bucket.Requests, Capacity: defaultRequests, Period: time.Minute},
		{Name: "bytes", Unit: Bytes, Capacity: defaultBytes, Period: time.Minute},
	}
}

// withDefaults fills what is zero.
func (c Config) withDefaults() Config {
	a, r := &c.Address, &c.Request
	if a.Limits == nil {
		a.Limits = defaultLimits()
	}
	if a.SiteLimits == nil {
		a.SiteLimits = widened(a.Limits)
	}
	a.UnderWay = cmp.Or(a.UnderWay, defaultUnderWay)
	a.Connections = cmp.Or(a.Connections, defaultConnections)
	if c.Key.Limits == nil && c.Key.given() {
		c.Key.Limits = defaultLimits()
	}
	r.MaxBody, r.BodyTime = cmp.Or(r.MaxBody, defaultBody), cmp.Or(r.BodyTime, defaultBodyTime)
	r.MaxUpload, r.UploadTime = cmp.Or(r.MaxUpload, r.MaxBody), cmp.Or(r.UploadTime, r.BodyTime)
	r.MaxQuery, r.MaxHeader = cmp.Or(r.MaxQuery, defaultQuery), cmp.Or(r.MaxHeader, defaultHeader)
	r.UnderWay = cmp.Or(r.UnderWay, defaultAllUnderWay)
	r.MaxValues = cmp.Or(r.MaxValues, defaultMaxValues)
	a.Values, r.Values = cmp.Or(a.Values, defaultHeld), cmp.Or(r.Values, defaultAllHeld)
	if c.Connection.Limits == nil {
		c.Connection.Limits = []bucket.Limit{{Name: "connection", Unit: bucket.Requests, Capacity: 100, Refill: 20, Period: time.Second}}
	}
	c.Connection.Operations = cmp.Or(c.Connection.Operations, defaultOperations)
	c.Connection.All = cmp.Or(c.Connection.All, defaultAll)
	a.Operations = cmp.Or(a.Operations, defaultRunning)
	c.Connection.AllOperations = cmp.Or(c.Connection.AllOperations, defaultAllRunning)
	c.Connection.MaxInit = cmp.Or(c.Connection.MaxInit, defaultInit)
	c.Documents = c.Documents.withDefaults()
	c.MaxBudgets = cmp.Or(c.MaxBudgets, defaultBudgets)
	c.Observe.Refusals = cmp.Or(c.Observe.Refusals, defaultRefusals)
	if c.Observe.Logger == nil {
		c.Observe.Logger = slog.Default()
	}
	return c
}

// widened returns the limits of a site whose clients have these.
func widened(limits []bucket.Limit) []bucket.Limit {
	all := make([]bucket.Limit, len(limits))
	for i, limit := range limits {
		limit.Refill = siteFactor * cmp.Or(limit.Refill, limit.Capacity)
		limit.Capacity *= siteFactor
		all[i] = limit
	}
	return all
}

func (c *KeyConfig) given() bool { return c.Header != "" || c.Find != nil }

// validate returns every mistake at once. Defaults have been filled in.
func (c *Config) validate() error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("edge: Config."+format, args...))
	}
	(*inbound.Proxies)(&c.Proxies).Check(fail)
	c.Address.validate(fail)
	c.Request.validate(fail)
	switch {
	case c.Key.Header != "" && c.Key.Find != nil:
		fail("Key has Header and Find, of which one finds the key: leave one out")
	case !c.Key.given() && len(c.Key.Limits) > 0:
		fail("Key.Limits are those of keys that nobody finds: set Key.Header or Key.Find")
	}
	most := c.Request.largest()
	checkLimits(fail, "Address.Limits", c.Address.Limits, most)
	checkLimits(fail, "Address.SiteLimits", c.Address.SiteLimits, most)
	checkLimits(fail, "Key.Limits", c.Key.Limits, most)
	checkLimits(fail, "Connection.Limits", c.Connection.Limits, 0)
	c.Documents.check(fail)
	countOrNone(fail, "Connection.Operations", c.Connection.Operations)
	countOrNone(fail, "Connection.All", c.Connection.All)
	countOrNone(fail, "Connection.AllOperations", c.Connection.AllOperations)
	countOrNone(fail, "Connection.MaxInit", c.Connection.MaxInit)
	countOrNone(fail, "Observe.Refusals", c.Observe.Refusals)
	if c.MaxBudgets < 1 {
		fail("MaxBudgets is %d, want 1 or more", c.MaxBudgets)
	}
	if c.Server != nil {
		for _, mistake := range serverMistakes(c.Server, c.Request.MaxHeader) {
			fail("Server.%s", mistake)
		}
	}
	return errors.Join(errs...)
}

func (c *AddressConfig) levels() inbound.Levels {
	return inbound.Levels{Client: c.IPv6Client, Site: c.IPv6Site}
}

func (c *AddressConfig) validate(fail failFunc) {
	levels := c.levels()
	levels.Check("Address.IPv6Client", "Address.IPv6Site", fail)
	countOrNone(fail, "Address.UnderWay", c.UnderWay)
	countOrNone(fail, "Address.Connections", c.Connections)
	countOrNone(fail, "Address.Operations", c.Operations)
	countOrNone(fail, "Address.Values", c.Values)
}

func (c *RequestConfig) validate(fail failFunc) {
	for _, size := range []struct {
		field string
		value int64
	}{
		{"MaxBody", c.MaxBody},
		{"MaxUpload", c.MaxUpload},
		{"MaxQuery", int64(c.MaxQuery)},
		{"MaxHeader", int64(c.MaxHeader)},
		{"BodyTime", int64(c.BodyTime)},
		{"UploadTime", int64(c.UploadTime)},
	} {
		if size.value < 1 {
			fail("Request.%s is negative, want above 0: a door has this bound", size.field)
		}
	}
	if c.MaxQuery > c.MaxHeader {
		fail("Request.MaxQuery is %d, want at most %d, which is Request.MaxHeader: that counts the URL too", c.MaxQuery, c.MaxHeader)
	}
	countOrNone(fail, "Request.UnderWay", c.UnderWay)
	countOrNone(fail, "Request.MaxValues", c.MaxValues)
	countOrNone(fail, "Request.Values", c.Values)
}

// largest is how many bytes a request counts for at most.
func (c *RequestConfig) largest() int64 {
	// Each value but the first has a comma, a colon or a bracket before it.
	values := c.MaxBody/2 + 1
	if c.MaxValues >= 0 {
		values = min(values, int64(c.MaxValues)+1)
	}
	return int64(c.MaxHeader) + max(c.MaxBody+jsonvalue.Bytes*values, c.MaxUpload)
}

// checkLimits fails for limits that count nothing, or that the largest request never passes. Without a largest one they
// are in requests alone.
func checkLimits(fail failFunc, field string, limits []bucket.Limit, largest int64) {
	for i := range limits {
		l := &limits[i]
		switch {
		case l.Unit == bucket.Requests:
		case l.Unit == Bytes && largest == 0:
			fail("%s: limit %q counts bytes, want requests: bytes are those of its address and key", field, l.Name)
		case l.Unit == Bytes && l.Capacity < largest:
			fail("%s: limit %q has %d bytes, want at least %d, or the largest request never passes (Request.MaxHeader and MaxBody or MaxUpload, and 16 for each of MaxValues)",
				field, l.Name, l.Capacity, largest)
		case l.Unit == Bytes:
		default:
			fail("%s: limit %q is in %q, want requests or bytes", field, l.Name, cmp.Or(l.Unit, bucket.Points))
		}
	}
	if _, err := bucket.Compile(limits...); err != nil {
		fail("%s: %w", field, err)
	}
}

// serverMistakes says what a server does not bound.
func serverMistakes(s *http.Server, header int) []string {
	var mistakes []string
	if most := cmp.Or(max(0, s.MaxHeaderBytes), http.DefaultMaxHeaderBytes); most > header {
		mistakes = append(mistakes, fmt.Sprintf(
			"MaxHeaderBytes lets in %d bytes of headers, which are read before the door sees them: set it to %d, which is Request.MaxHeader", most, header))
	}
	if s.ReadHeaderTimeout <= 0 && s.ReadTimeout <= 0 {
		mistakes = append(mistakes, "ReadHeaderTimeout is not set, so that a connection may take any time for its headers: set it to 5 * time.Second")
	}
	return mistakes
}
