package main

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/collect"
	"github.com/gqlgen-ratelimit/ratelimit/internal/inbound"
)

// defaultListen is where the daemon listens if nothing is said: on this machine alone.
const defaultListen = "127.0.0.1:8470"

// options say how the daemon runs. They are the fields of the configuration file, of which the flags are the most frequent ones.
type options struct {
	// Listen is host and port. Beyond loopback it takes TLS, or PlainText.
	Listen string `yaml:"listen"`
	// Proxies are the networks of those that stand in front of the daemon. What they write into X-Forwarded-For is believed.
	Proxies []netip.Prefix `yaml:"proxies"`
	// PlainText lets the daemon listen beyond loopback without TLS: tokens can be read by whoever is in between.
	PlainText bool `yaml:"plainText"`
	// Data is the folder of the embedded database and of the key of webhooks.
	Data string `yaml:"data"`
	// Database is the URL of a PostgreSQL. Empty means the embedded database.
	Database string `yaml:"database"`
	// Redis is that of the instances. Empty means that changes stay here.
	Redis string `yaml:"redis"`
	// Namespace is that of the instances in Redis.
	Namespace string `yaml:"namespace"`
	// Stream is the URL of the Redis that changes are announced in, as events. Empty means that of Redis, and none no Redis.
	Stream string `yaml:"stream"`

	TLS struct {
		// Certificate and Key are files in PEM.
		Certificate string `yaml:"certificate"`
		Key         string `yaml:"key"`
	} `yaml:"tls"`

	Webhooks webhookOptions `yaml:"webhooks"`

	OIDC  []oidcOptions `yaml:"oidc"`
	Usage usageOptions  `yaml:"usage"`
	// PolicyKeys are Ed25519 public keys in base64. If there are any, a revision that none of them has signed is refused.
	PolicyKeys []string `yaml:"policyKeys"`

	// printSQL prints the tables, and what sqlRole needs on them. newToken prints a bootstrap token although there are tokens.
	printSQL, newToken bool
	// now is the clock of what is stored, nil for that of the system, and collect changes how usage is collected, nil for nothing: for tests.
	now     func() time.Time
	collect func(*collect.Config)
	sqlRole string
	// guessed says that nobody has said where to listen: a daemon that runs may do so elsewhere.
	guessed bool
	// notes are what is odd about where passwords stand.
	notes []string
}

// oidcOptions are those of an issuer of OpenID Connect.
type oidcOptions struct {
	Issuer       string `yaml:"issuer"`
	Audience     string `yaml:"audience"`
	TenantsClaim string `yaml:"tenantsClaim"`
	SubjectClaim string `yaml:"subjectClaim"`
	Roles        []struct {
		Claim      string      `yaml:"claim"`
		Value      string      `yaml:"value"`
		Role       access.Role `yaml:"role"`
		Everywhere bool        `yaml:"everywhere"`
	} `yaml:"roles"`
}

const help = `Usage: gqlratelimitd [flags]
       gqlratelimitd audit verify [FILE] [-known NUMBER:HASH] [flags]
       gqlratelimitd audit export [-o FILE] [flags]

Without an argument it listens on ` + defaultListen + `, keeps everything in a file of SQLite in the state folder of
the user, and prints a one-time token and what to do with it.

Whoever may list the processes of the machine reads its arguments: put a URL with a password into the file of -config.

`

// register registers the flags.
func (o *options) register(flags *flag.FlagSet) (config *string) {
	config = flags.String("config", "", "`file` in YAML with all settings; flags beat it")
	flags.StringVar(&o.Listen, "listen", o.Listen, "`address` to listen on (default "+defaultListen+")")
	flags.BoolVar(&o.PlainText, "plain-text", o.PlainText, "listen beyond loopback without TLS")
	flags.StringVar(&o.Data, "data", o.Data, "`folder` of the database and of the key of webhooks")
	flags.StringVar(&o.Database, "database", o.Database, "`URL` of a PostgreSQL, postgres://…; otherwise a file of SQLite in the folder of -data")
	flags.StringVar(&o.Redis, "redis", o.Redis, "`URL` of the Redis of the instances")
	flags.StringVar(&o.Namespace, "namespace", o.Namespace, "`name` of the limiter in Redis (default main)")
	flags.StringVar(&o.Stream, "stream", o.Stream, "`URL` of the Redis in which changes are announced as events, or none (default that of -redis)")
	flags.StringVar(&o.TLS.Certificate, "tls-cert", o.TLS.Certificate, "`file` with the certificate")
	flags.StringVar(&o.TLS.Key, "tls-key", o.TLS.Key, "`file` with its key")
	flags.Func("proxies", "the `networks` of proxies whose X-Forwarded-For is believed, such as 10.0.0.0/8, with commas between them", o.readProxies)
	o.Webhooks.register(flags)
	flags.BoolVar(&o.printSQL, "print-sql", false, "print the SQL that makes the tables of a -database (by default SQLite), and end")
	flags.StringVar(&o.sqlRole, "sql-role", "", "the `role` of the daemon in PostgreSQL, for which -print-sql prints rights too")
	flags.BoolVar(&o.newToken, "new-token", false, "print a one-time token although there are tokens, because all of them are lost, and end; the daemon may run")
	flags.Func("oidc", "`issuer,audience,claim=value:role` of an issuer of OpenID Connect; more in the file of -config", o.addIssuer)
	return config
}

// readProxies reads networks from one text.
func (o *options) readProxies(text string) error {
	o.Proxies = nil
	for part := range strings.SplitSeq(text, ",") {
		network, err := netip.ParsePrefix(strings.TrimSpace(part))
		if err != nil {
			return fmt.Errorf("%q is no network; write one such as 10.0.0.0/8", part)
		}
		o.Proxies = append(o.Proxies, network)
	}
	return nil
}

// proxies are those that stand in front of the daemon.
func (o *options) proxies() *inbound.Proxies { return &inbound.Proxies{Trusted: o.Proxies} }

// client is where a request comes from.
func (o *options) client(r *http.Request) netip.Addr {
	return o.proxies().Client(inbound.Peer(r), r.Header)
}

// addIssuer reads an issuer from one text.
func (o *options) addIssuer(text string) error {
	parts := strings.Split(text, ",")
	if len(parts) < 3 {
		return errors.New("want issuer,audience,claim=value:role, and perhaps more of the last")
	}
	issuer := oidcOptions{Issuer: parts[0], Audience: parts[1]}
	for _, part := range parts[2:] {
		claim, rest, ok := strings.Cut(part, "=")
		at := strings.LastIndexByte(rest, ':')
		if !ok || at < 0 {
			return fmt.Errorf("%q is not claim=value:role", part)
		}
		issuer.Roles = append(issuer.Roles, struct {
			Claim      string      `yaml:"claim"`
			Value      string      `yaml:"value"`
			Role       access.Role `yaml:"role"`
			Everywhere bool        `yaml:"everywhere"`
		}{claim, rest[:at], access.Role(rest[at+1:]), false})
	}
	o.OIDC = append(o.OIDC, issuer)
	return nil
}

// readOptions reads the flags, and the configuration file if they name one.
func readOptions(args []string, w io.Writer) (*options, error) {
	return readOptionsWith(args, w, func(*flag.FlagSet) {})
}

// readOptionsWith is readOptions with flags of a command besides.
func readOptionsWith(args []string, w io.Writer, more func(*flag.FlagSet)) (*options, error) {
	flagsOf := func(o *options) (*flag.FlagSet, *string) {
		flags := flag.NewFlagSet("gqlratelimitd", flag.ContinueOnError)
		flags.SetOutput(w)
		flags.Usage = func() {
			fmt.Fprint(w, help)
			flags.PrintDefaults()
		}
		more(flags)
		return flags, o.register(flags)
	}
	o := &options{}
	flags, config := flagsOf(o)
	if err := parse(flags, args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("%w: there is no command %q", errUsage, flags.Arg(0))
	}
	var notes []string
	if o.hasPassword() {
		notes = append(notes, "an argument has a password, which everybody on the machine reads: put it into the file of -config")
	}
	if *config != "" {
		// What the file says is the default of the flags.
		o = &options{}
		if err := o.readFile(*config); err != nil {
			return nil, err
		}
		notes = append(notes, o.notes...)
		flags, _ = flagsOf(o)
		if err := parse(flags, args); err != nil {
			return nil, err
		}
	}
	o.notes = notes
	return o, o.complete()
}

// hasPassword reports whether a URL has a password.
func (o *options) hasPassword() bool {
	for _, address := range [...]string{o.Database, o.Redis, o.Stream} {
		parsed, err := url.Parse(address)
		if err != nil {
			continue
		}
		if _, has := parsed.User.Password(); has || parsed.Query().Has("password") {
			return true
		}
	}
	return false
}

func parse(flags *flag.FlagSet, args []string) error {
	err := flags.Parse(args)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		return errUsage
	}
	return err
}

// maxConfig is how many bytes a configuration file has.
const maxConfig = 1 << 20

// readFile reads a configuration file, with no fields but those that there are.
func (o *options) readFile(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxConfig+1))
	if err != nil {
		return err
	}
	if len(text) > maxConfig {
		return fmt.Errorf("%s has more than %d bytes", name, maxConfig)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(o); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %s", name, goTypes.ReplaceAllString(err.Error(), ""))
	}
	// What stands in a second document would be taken for said.
	if err := decoder.Decode(&options{}); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: there is more than one document", name)
	}
	if info, err := file.Stat(); err == nil && info.Mode().Perm()&0o004 != 0 && o.hasPassword() {
		o.notes = append(o.notes, fmt.Sprintf("everybody on the machine may read %s, which has a password: chmod o-r it", name))
	}
	return nil
}

// goTypes are names of Go in errors of YAML, which say nothing to who writes a file.
var goTypes = regexp.MustCompile(` in type [\w.]+`)

// complete fills in defaults, and returns all mistakes.
func (o *options) complete() error {
	var mistakes []error
	o.guessed = o.Listen == ""
	o.Listen = cmp.Or(o.Listen, defaultListen)
	if o.Data == "" {
		folder, err := stateFolder()
		mistakes = append(mistakes, err)
		o.Data = folder
	}
	if folder, err := filepath.Abs(o.Data); err == nil {
		// What it prints holds wherever it is read.
		o.Data = folder
	}
	if (o.TLS.Certificate == "") != (o.TLS.Key == "") {
		mistakes = append(mistakes, errors.New("-tls-cert and -tls-key go together"))
	}
	o.proxies().Check(func(format string, args ...any) { mistakes = append(mistakes, fmt.Errorf(format, args...)) })
	mistakes = append(mistakes, o.checkListen(), o.Usage.check(), o.Webhooks.complete(o.Data))
	_, err := o.policyKeys()
	return errors.Join(append(mistakes, err)...)
}

// checkListen returns an error if others could read what is sent.
func (o *options) checkListen() error {
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return fmt.Errorf("-listen is host and port, such as %s: %w", defaultListen, err)
	}
	if o.TLS.Certificate != "" || o.PlainText || host == "localhost" {
		return nil
	}
	if address, err := netip.ParseAddr(host); err == nil && address.IsLoopback() {
		return nil
	}
	return fmt.Errorf("-listen %s is open to other machines, and tokens would go over the network as plain text: "+
		"add -tls-cert and -tls-key, or -plain-text if something in front of it has TLS", o.Listen)
}

// policyKeys are those that sign revisions.
func (o *options) policyKeys() (keys []ed25519.PublicKey, _ error) {
	for i, text := range o.PolicyKeys {
		key, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(key) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("policyKeys[%d] is not an Ed25519 public key in base64: want %d bytes", i, ed25519.PublicKeySize)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// streamURL is the Redis that changes are announced in, empty for none.
func (o *options) streamURL() string {
	if o.Stream == "none" {
		return ""
	}
	return cmp.Or(o.Stream, o.Redis)
}

// databaseURL is where the database is.
func (o *options) databaseURL() string {
	return cmp.Or(o.Database, "sqlite:"+o.databaseFile())
}

// databaseFile is the embedded database.
func (o *options) databaseFile() string { return filepath.Join(o.Data, "gqlratelimitd.db") }

// auth is how people and programs come in.
func (o *options) auth(tokens access.TokenStore) access.AuthConfig {
	cfg := access.AuthConfig{Tokens: tokens, Address: o.client}
	for _, issuer := range o.OIDC {
		oidc := access.OIDCConfig{Issuer: issuer.Issuer, Audience: issuer.Audience, TenantsClaim: issuer.TenantsClaim, SubjectClaim: issuer.SubjectClaim}
		for _, role := range issuer.Roles {
			oidc.Roles = append(oidc.Roles, access.ClaimRole{Claim: role.Claim, Value: role.Value, Role: role.Role, Everywhere: role.Everywhere})
		}
		cfg.OIDC = append(cfg.OIDC, oidc)
	}
	return cfg
}
