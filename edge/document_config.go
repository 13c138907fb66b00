package edge

import (
	"context"
	"math"
	"runtime"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/document"
)

// DocumentConfig bounds what a document takes before it has a price: its size, how many are parsed at once, and what is
// parsed although its refusal is known. The zero value bounds all of it. [None] in a bound takes it away.
//
// A document that is in the cache passes all of this for a look into a map.
type DocumentConfig struct {
	// MaxBytes is the length of the longest document, without its variables. 0 means 64 KiB. A longer one is answered
	// with PAYLOAD_TOO_LARGE.
	MaxBytes int
	// MaxTokens is how many tokens a document has at most. A comment is one, as for the token limit of gqlparser, which
	// keeps it with what follows. 0 means 2 000. What is beyond this and the following bounds is answered with QUERY_LIMIT_EXCEEDED.
	MaxTokens int
	// MaxDepth is how deep braces, brackets and parentheses may be in each other. 0 means 64.
	MaxDepth int
	// MaxOperations is how many operations a document has at most, of which a request runs one. 0 means 16.
	MaxOperations int
	// MaxFragments is how many fragments a document defines at most. 0 means 128.
	MaxFragments int
	// MaxName is how many bytes a name or a number has at most. 0 means 256. A server that suggests names compares each that
	// is not there with all that are, letter by letter.
	MaxName int
	// MaxReach is how many tokens all operations and fragments have at most, each counted with those of the fragments that
	// it spreads, directly or not. A token of 64 bytes or more counts once more for each 64. gqlparser walks
	// each fragment again from every operation and every fragment that reaches it, so that this is what its validation takes.
	// 0 means 16 times MaxTokens, or MaxBytes where that is None: 32 000. A client that spreads each fragment once is
	// within it while fragments are not deeper in each other than 15.
	MaxReach int
	// MaxExtensions is how many values of JSON the extensions of an operation have, lists and objects among them. gqlgen keeps
	// the extensions for as long as the operation runs: 64 KiB of small objects take 3.2 MB. 0 means 256.
	MaxExtensions int

	// MaxParsing is how many documents are parsed and validated at once. 0 means one for each processor that Go uses, and
	// at least two. One address, and one key, has at most half of them.
	MaxParsing int
	// MaxWaiting is how many more wait for that. 0 means 64, and [None] lets nobody wait. Half of them may be of one address or
	// key, whoever has fewest documents under way is next, and who has most waiting gives way when there is no more room.
	MaxWaiting int
	// MaxWait is how long one waits at most, before it is answered with OVERLOADED. 0 means 250 milliseconds. On a WebSocket
	// the connection reads nothing else meanwhile.
	MaxWait time.Duration

	// RememberInvalid is how many bytes are kept to know documents that did not parse or validate. They are refused without
	// being parsed for a minute, whoever sends them and whatever the variables are. 0 means 4 MiB, and [None] remembers
	// none. The limiter charges for them as if they had been parsed. The error presenter of the server is called for each
	// answer; its extensions are not kept, but for the code.
	RememberInvalid int
	// MaxErrors is how many errors the answer to an operation that never began lists, as to an invalid document, to variables of
	// other types, and to a body that is no JSON. 0 means 100, as graphql-js does it. Its messages have 1 KiB each and 32
	// KiB altogether at most: longer ones are cut, and what is left is not listed. [None] takes all of this
	// away. 12 kB of a document made 350 kB of errors, one name of 50 kB in a hundred errors 5 MB, and 64 kB of a
	// body 390 kB.
	MaxErrors int

	// Cache is the document cache of the server, the same that is given to SetQueryCache. Nil means that the door knows
	// no cache: then every document takes its turn.
	Cache *Documents
	// Limiter is asked what is known to be refused, and what was admitted. A *ratelimit.Extension is one. Nil means that
	// nobody is asked.
	Limiter Limiter
}

// Limiter is what the door asks of the limiter behind it. Both methods are called for documents that are not in the
// cache, by many goroutines at once, and must not wait for anything: on a WebSocket they hold up the whole connection.
type Limiter interface {
	// RefusesUnread returns the answer to an operation of which only the parameters were read, if the limiter is
	// certain to refuse it without parsing its document. Nil means that it may pass. The limiter
	// keeps nothing of the parameters.
	RefusesUnread(ctx context.Context, params *graphql.RawParams) *gqlerror.Error
	// Admitted reports whether the operation of the context, which the limiter has decided about, was admitted at its price.
	Admitted(ctx context.Context) bool
}

// The defaults of DocumentConfig.
const (
	defaultMaxBytes        = 64 << 10
	defaultMaxTokens       = 2000
	defaultMaxDepth        = 64
	defaultMaxOperations   = 16
	defaultMaxFragments    = 128
	defaultMaxName         = 256
	defaultMaxExtensions   = 256
	reachPerToken          = 16
	defaultMaxWaiting      = 64
	defaultMaxWait         = 250 * time.Millisecond
	defaultRememberInvalid = 4 << 20
	defaultMaxErrors       = 100
	// maxMaxWait keeps a WebSocket alive, whose pings wait as well.
	maxMaxWait = 5 * time.Second
)

// check reports every mistake.
func (c *DocumentConfig) check(fail failFunc) {
	for _, bound := range []struct {
		name  string
		value int
	}{
		{"MaxBytes", c.MaxBytes},
		{"MaxTokens", c.MaxTokens},
		{"MaxDepth", c.MaxDepth},
		{"MaxOperations", c.MaxOperations},
		{"MaxFragments", c.MaxFragments},
		{"MaxName", c.MaxName},
		{"MaxReach", c.MaxReach},
		{"MaxExtensions", c.MaxExtensions},
		{"MaxParsing", c.MaxParsing},
		{"MaxWaiting", c.MaxWaiting},
		{"RememberInvalid", c.RememberInvalid},
		{"MaxErrors", c.MaxErrors},
	} {
		countOrNone(fail, "Documents."+bound.name, bound.value)
	}
	if c.MaxWait < 0 || c.MaxWait > maxMaxWait {
		fail("Documents.MaxWait is %s: write at most %s, or 0 for %s", c.MaxWait, maxMaxWait, defaultMaxWait)
	}
}

// withDefaults returns the configuration with the defaults in place. A bound that was taken away is negative.
func (c DocumentConfig) withDefaults() DocumentConfig {
	for _, bound := range []struct {
		value     *int
		otherwise int
	}{
		{&c.MaxBytes, defaultMaxBytes},
		{&c.MaxTokens, defaultMaxTokens},
		{&c.MaxDepth, defaultMaxDepth},
		{&c.MaxOperations, defaultMaxOperations},
		{&c.MaxFragments, defaultMaxFragments},
		{&c.MaxName, defaultMaxName},
		{&c.MaxExtensions, defaultMaxExtensions},
		{&c.MaxParsing, max(2, runtime.GOMAXPROCS(0))},
		{&c.MaxWaiting, defaultMaxWaiting},
		{&c.RememberInvalid, defaultRememberInvalid},
		{&c.MaxErrors, defaultMaxErrors},
	} {
		if *bound.value == 0 {
			*bound.value = bound.otherwise
		}
	}
	if c.MaxWait == 0 {
		c.MaxWait = defaultMaxWait
	}
	if c.MaxReach == 0 {
		c.MaxReach = c.mostReach()
	}
	return c
}

// bounds are those of a text. Defaults have been filled in.
func (c *DocumentConfig) bounds() document.Bounds {
	return document.Bounds{
		MaxBytes: bounded(c.MaxBytes), MaxTokens: bounded(c.MaxTokens), MaxDepth: bounded(c.MaxDepth),
		MaxOperations: bounded(c.MaxOperations), MaxFragments: bounded(c.MaxFragments), MaxName: bounded(c.MaxName),
		MaxReach: bounded(c.MaxReach),
	}
}

// mostReach is the default of MaxReach. A document has no more tokens than bytes.
func (c *DocumentConfig) mostReach() int {
	for _, most := range []int{c.MaxTokens, c.MaxBytes} {
		if most > 0 {
			return min(most, math.MaxInt32/reachPerToken) * reachPerToken
		}
	}
	return None
}
