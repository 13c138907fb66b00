package daemon

import (
	"net/http"
	"net/url"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// maxUsage is how many bytes of usage are read: a hundred thousand rows.
const maxUsage = 96 << 20

// UsageQuestion says which usage is asked for, in the words of the daemon. The zero value is all of its defaults.
type UsageQuestion struct {
	// Tenant is whose it is. Empty is all.
	Tenant     string
	Window, By string
	From, To   time.Time
	Zone, Name string
}

// usagePath is where usage is asked for.
func (q *UsageQuestion) usagePath(what string) string {
	if q.Tenant == "" {
		return "/v1/ratelimit/usage/" + what
	}
	return "/v1/orgs/" + url.PathEscape(q.Tenant) + "/ratelimit/usage/" + what
}

// parameters are those that are said.
func (q *UsageQuestion) parameters(more ...string) url.Values {
	values := url.Values{}
	for name, value := range map[string]string{
		"window": q.Window, "by": q.By, "zone": q.Zone, "name": q.Name,
	} {
		if value != "" {
			values.Set(name, value)
		}
	}
	for name, at := range map[string]time.Time{"from": q.From, "to": q.To} {
		if !at.IsZero() {
			values.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	for i := 0; i+1 < len(more); i += 2 {
		values.Set(more[i], more[i+1])
	}
	return values
}

// Usage returns what was counted.
func (d *Client) Usage(q *UsageQuestion) (*usage.Series, error) {
	body, err := d.ask(&question{method: http.MethodGet, path: q.usagePath("series"), query: q.parameters("format", "json"), again: true, most: maxUsage})
	if err != nil {
		return nil, err
	}
	told := &usage.Series{}
	return told, read(body, told)
}

// UsageCSV returns what was counted as a table, in which names that a spreadsheet would compute are harmless.
func (d *Client) UsageCSV(q *UsageQuestion) ([]byte, error) {
	return d.ask(&question{method: http.MethodGet, path: q.usagePath("series"), query: q.parameters("format", "csv"), again: true, most: maxUsage})
}
