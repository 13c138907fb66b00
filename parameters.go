package ratelimit

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/url"
	"strconv"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/internal/number"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// maxQuery is how long the query string of a URL is at most that is looked into.
const maxQuery = 8 << 10

// Parameter implements tiers.Parameters. A value that is there twice is none: readers differ in which of them they take.
func (p *particulars) Parameter(where tiers.Parameter) (string, bool) {
	switch read := p.op.request; {
	case read == nil:
		return "", false
	case where.Header != "":
		values := read.Headers.Values(where.Header)
		if len(values) > 1 {
			p.op.extension.warnOnce(context.Background(), oddity{what: "header", name: where.Header}, "a header that custom limits go by came twice in a request, and "+
				"has no value then: if clients send it once, a proxy before the server adds its own", slog.String("header", where.Header))
		}
		return single(values)
	case where.Variable != "":
		return variable(read.Variables, where.Variable)
	}
	u := p.url()
	switch {
	case u == nil:
		return "", false
	case where.Query != "":
		if p.query == nil && len(u.RawQuery) <= maxQuery {
			p.query = u.Query()
		}
		return single(p.query[where.Query])
	default:
		return segment(u.Path, where.Path)
	}
}

// url returns that of the request, nil without the Handler.
func (p *particulars) url() *url.URL {
	if p.op.exchange == nil {
		return nil
	}
	return p.op.exchange.URL()
}

func single(values []string) (string, bool) {
	if len(values) != 1 {
		return "", false
	}
	return values[0], true
}

// segment returns a part of a path, counted from 1.
func segment(path string, n int64) (string, bool) {
	rest, found := strings.TrimPrefix(path, "/"), true
	for ; n > 1 && found; n-- {
		_, rest, found = strings.Cut(rest, "/")
	}
	value, _, _ := strings.Cut(rest, "/")
	return value, found && value != ""
}

// variable returns what stands at a path into variables, if that is a text, a number, or true or false.
func variable(variables map[string]any, path string) (string, bool) {
	var at any = variables
	for more := true; more; {
		var name string
		name, path, more = strings.Cut(path, ".")
		object, ok := at.(map[string]any)
		if !ok {
			return "", false
		}
		at = object[name]
	}
	switch value := at.(type) {
	case string:
		return value, true
	case bool:
		return strconv.FormatBool(value), true
	case json.Number:
		return number.Plain(string(value))
	case int:
		return number.Plain(strconv.Itoa(value))
	case int64:
		return number.Plain(strconv.FormatInt(value, 10))
	case float64:
		return number.Plain(strconv.FormatFloat(value, 'g', -1, 64))
	default:
		return "", false
	}
}
