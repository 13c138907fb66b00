package redisclient

import (
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// address is what one address says.
type address struct {
	// options are those of the server, or of the Sentinel, at the address.
	options *redis.Options
	// failover are the options of a URL that names a master, or nil.
	failover *redis.FailoverOptions
	cluster  bool
	master   string
}

// hosts are the addresses to connect to: one, or more in a URL of Sentinels.
func (a *address) hosts() []string {
	if a.failover != nil {
		return a.failover.SentinelAddrs
	}
	return []string{a.options.Addr}
}

// parseAddress reads one address. Its errors do not repeat the address, which may hold a password.
func parseAddress(text string) (address, error) {
	scheme, _, ok := strings.Cut(text, "://")
	if !ok {
		host, port, err := net.SplitHostPort(text)
		if err != nil || host == "" || port == "" {
			return address{}, errors.New("neither host:port nor a redis://, rediss:// or unix:// URL")
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return address{}, errPort
		}
		return address{options: &redis.Options{Addr: text}}, nil
	}
	switch scheme {
	case "redis", "rediss", "unix":
	default:
		return address{}, errors.New("unknown scheme; redis://, rediss:// or unix:// fits")
	}
	u, err := url.Parse(text)
	if err != nil {
		return address{}, errURL
	}
	a := address{}
	query := u.Query()
	if query.Has("cluster") {
		if a.cluster = query.Get("cluster") == "true"; !a.cluster && query.Get("cluster") != "false" {
			return address{}, errors.New("cluster is neither true nor false")
		}
		query.Del("cluster")
		u.RawQuery = query.Encode()
	}
	if query.Has("master_name") {
		if a.master = query.Get("master_name"); a.master == "" {
			return address{}, errors.New("an empty master_name; give the one that the Sentinels watch")
		}
		if a.failover, err = redis.ParseFailoverURL(u.String()); err != nil {
			return address{}, errSentinelURL
		}
		return a, nil
	}
	if a.options, err = redis.ParseURL(u.String()); err != nil {
		return address{}, errURL
	}
	return a, nil
}

var (
	errPort        = errors.New("what follows the colon of host:port is no port from 1 to 65535; a database stands in a URL, as in redis://host:port/3")
	errURL         = errors.New("not a valid Redis URL; the form is redis://user:password@host:port/database, with options as go-redis names them")
	errSentinelURL = errors.New("not a valid URL of Sentinels; the form is redis://user:password@sentinel:26379/database?master_name=name&addr=sentinel2:26379&username=user&password=password, with user and password of the Sentinels before the @ and those of Redis behind")
)

// target is what a client is for.
type target struct {
	nodes   []address
	cluster bool
	master  string
}

// check returns why the addresses do not fit each other or what is to be there.
func (t *target) check(cfg *Config) error {
	var errs []error
	say := func(wrong bool, text string) {
		if wrong {
			errs = append(errs, errors.New("redisclient: "+text))
		}
	}
	unix, database, differ := false, cfg.Database != 0, false
	first := t.nodes[0].identity()
	for i := range t.nodes {
		options := t.nodes[i].options
		unix = unix || options != nil && options.Network == "unix"
		database = database || options != nil && options.DB != 0
		differ = differ || t.nodes[i].identity() != first
	}
	say(t.master != "" && t.cluster, "both a master of Sentinels and a cluster; a cluster fails over by itself and needs no Sentinels")
	say(t.cluster && unix, "a cluster cannot be reached by unix sockets")
	say(t.master != "" && unix, "Sentinels cannot be reached by unix sockets")
	say(t.cluster && database, "a cluster has no numbered databases")
	say(differ, "the addresses differ in user, password or TLS; give all the same")
	say(t.master == "" && (cfg.SentinelUsername != "" || cfg.SentinelPassword != ""),
		"a user or password of Sentinels without a Master; give the name under which they know the master")
	return errors.Join(errs...)
}

// identity is what the addresses of one client have to agree in.
type identity struct {
	username, password           string
	redisUsername, redisPassword string
	encrypted                    bool
	database                     int
}

func (a *address) identity() identity {
	if f := a.failover; f != nil {
		return identity{f.SentinelUsername, f.SentinelPassword, f.Username, f.Password, f.TLSConfig != nil, f.DB}
	}
	o := a.options
	return identity{username: o.Username, password: o.Password, encrypted: o.TLSConfig != nil, database: o.DB}
}

// addresses are all hosts.
func (t *target) addresses() []string {
	var all []string
	for i := range t.nodes {
		all = append(all, t.nodes[i].hosts()...)
	}
	return all
}

// tls returns how connections are encrypted, or nil. The certificates of several hosts are verified each
// by the name of its own host, and not by that of the first.
func (t *target) tls(cfg *Config) *tls.Config {
	if cfg.TLS != nil {
		return cfg.TLS
	}
	// Clone makes nil of nil.
	var found *tls.Config
	if f := t.nodes[0].failover; f != nil {
		found = f.TLSConfig.Clone()
	} else {
		found = t.nodes[0].options.TLSConfig.Clone()
	}
	if found == nil {
		return nil
	}
	for _, other := range t.addresses() {
		if host, _, err := net.SplitHostPort(other); err != nil || host != found.ServerName {
			found.ServerName = ""
		}
	}
	// The master is somewhere else than the Sentinels.
	if t.master != "" {
		found.ServerName = ""
	}
	return found
}
