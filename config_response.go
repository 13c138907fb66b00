package ratelimit

import (
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/internal/show"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// ResponseConfig configures what clients are told about limits, and where. docs/reference/responses.md shows what each
// option changes. The zero value is the default in each field.
type ResponseConfig struct {
	// Headers are the dialects of the rate limit headers: one HeaderForm, or several joined by |. Zero means
	// [HeadersDraft10].
	Headers HeaderForm
	// ExposeHeaders adds the headers that an answer has of this package, and no others, to its
	// Access-Control-Expose-Headers, without which scripts in browsers cannot read them from another
	// origin. What the application lists there stays.
	ExposeHeaders bool
	// StatusOK answers refusals with the status that gqlgen chose instead of 429 and its like.
	StatusOK bool
	// Status is the HTTP status of refusals by code, such as [ratelimitclient.CodeRateLimited], where it is not to be the one
	// that stands there: from 400 to 599, or 200, which leaves the status that gqlgen chose. Codes that it
	// does not name keep theirs.
	Status map[string]int
	// Full tells clients of every limit in each answer. By default answers are short: extensions.rateLimit has what the operation
	// costs and the limit in points with the smallest share left, and headers name that limit, those of which more than half is
	// used and those that would refuse the operation next. A client that wants everything sends GraphQL-Cost: full.
	Full bool
	// HelpURL is the page on which clients read about the limits of this server: an absolute http or https URL of at most 256
	// bytes, which stands in the error of each refusal as extensions.helpUrl. Empty means that there is none.
	HelpURL string
	// Hide is what no client is told, whatever its tier. What a tier hides, as the policy says, is hidden
	// besides.
	Hide tiers.Hide
	// ShowShadow tells clients of limits and maximum costs in mode shadow and off as well: in headers, extensions and the
	// field rateLimit. By default answers are what they would be if the policy did not have them, and a client that has
	// nothing else is told nothing. What is in mode warn is told always.
	ShowShadow bool
}

// HeaderForm is a set of dialects of the rate limit headers. Retry-After is written whatever it is.
//
// A header that has one number for everything is about one limit: the one that stands at the top of extensions.rateLimit. Its Reset is the time until the refused
// operation can pass, and where nothing was refused the time until the limit is full again. What remains
// is rounded down, times are rounded up.
type HeaderForm uint8

const (
	// HeadersDraft10 writes RateLimit and RateLimit-Policy as draft-ietf-httpapi-ratelimit-headers-10
	// does, with the unit in the parameter qu: about the limit at the top of extensions.rateLimit, and those that clients pace
	// themselves by of which more than half is used, which refused or which would refuse the operation next; with GraphQL-Cost:
	// full or [ResponseConfig.Full] about each.
	HeadersDraft10 = HeaderForm(show.Draft10)
	// HeadersDraft6 writes RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset as the draft did up to
	// its sixth version. Reset is in seconds from now.
	HeadersDraft6 = HeaderForm(show.Draft6)
	// HeadersLegacy writes X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset. Reset is in seconds
	// from now.
	HeadersLegacy = HeaderForm(show.Legacy)
	// HeadersGitHub writes the same as HeadersLegacy, and X-RateLimit-Used, with Reset in seconds since 1970
	// by the clock of the server, as GitHub has it. It cannot be joined with HeadersLegacy.
	HeadersGitHub = HeaderForm(show.GitHub)
	// HeadersNone writes none of them, nor RateLimit-Warning. It cannot be joined with others.
	HeadersNone = HeaderForm(show.None)
)

const maxHelpURL = 256

// validate reports every mistake.
func (c *ResponseConfig) validate(fail failFunc) {
	const all = HeadersNone<<1 - 1
	switch {
	case c.Headers&^all != 0:
		fail("Response.Headers is %d, which is more than the HeaderForm constants joined", c.Headers)
	case c.Headers&HeadersNone != 0 && c.Headers != HeadersNone:
		fail("Response.Headers joins HeadersNone with other forms: leave one of them out")
	case c.Headers&HeadersLegacy != 0 && c.Headers&HeadersGitHub != 0:
		fail("Response.Headers joins HeadersLegacy with HeadersGitHub, which give X-RateLimit-Reset two meanings: choose one")
	}
	if help := c.HelpURL; help != "" {
		page, err := url.Parse(help)
		if err != nil || page.Host == "" || page.Scheme != "https" && page.Scheme != "http" || len(help) > maxHelpURL {
			fail("Response.HelpURL is %.64q, want an absolute http or https URL of at most %d bytes", help, maxHelpURL)
		}
	}
	for _, code := range slices.Sorted(maps.Keys(c.Status)) {
		if !ratelimitclient.IsCode(code) {
			fail("Response.Status has %.40q, which is none of the codes of refusals: use the Code constants of ratelimitclient", code)
		}
		if status := c.Status[code]; status != http.StatusOK && (status < http.StatusBadRequest || status > 599) {
			fail("Response.Status of %.40q is %d, want 200 or from 400 to 599", code, status)
		}
	}
}
