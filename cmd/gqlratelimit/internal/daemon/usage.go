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
	// Last is for how long before now, 0 for what the daemon shows unless it is told.
	Last time.Duration
}

// Usage returns what was counted.
func (d *Client) Usage(q *UsageQuestion) (*usage.Series, error) {
	path := "/v1/ratelimit/usage/series"
	if q.Tenant != "" {
		path = "/v1/orgs/" + url.PathEscape(q.Tenant) + "/ratelimit/usage/series"
	}
	query := url.Values{"format": {"json"}}
	for name, value := range map[string]string{"window": q.Window, "by": q.By} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if q.Last > 0 {
		query.Set("from", time.Now().Add(-q.Last).UTC().Format(time.RFC3339Nano))
	}
	body, err := d.ask(&question{method: http.MethodGet, path: path, query: query, again: true, most: maxUsage})
	if err != nil {
		return nil, err
	}
	told := &usage.Series{}
	return told, read(body, told)
}
