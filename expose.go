package ratelimit

import (
	"net/http"
	"slices"
	"strings"
)

const headerExpose = "Access-Control-Expose-Headers"

// exposable are the headers that this package sets, as clients know them.
var exposable = []string{
	"RateLimit", "RateLimit-Policy", "RateLimit-Warning",
	"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset",
	"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "X-RateLimit-Used",
	"Retry-After", "Idempotent-Replayed",
}

// exposeHeaders adds those of the headers that the answer has to the list of what scripts of other
// origins may read, behind what stands there already. It is called when the answer leaves, so that it sees
// what the application has set or removed until then.
func exposeHeaders(header http.Header) {
	var listed []string
	for _, value := range header[headerExpose] {
		for name := range strings.SplitSeq(value, ",") {
			if name = strings.TrimSpace(name); name != "" {
				listed = append(listed, name)
			}
		}
	}
	had := len(listed)
	for _, name := range exposable {
		if _, sent := header[http.CanonicalHeaderKey(name)]; sent && !containsFold(listed, name) {
			listed = append(listed, name)
		}
	}
	// An asterisk stays where it is: it means nothing where cookies are sent along.
	if len(listed) > had {
		header[headerExpose] = []string{strings.Join(listed, ", ")}
	}
}

func containsFold(list []string, text string) bool {
	return slices.ContainsFunc(list, func(element string) bool { return strings.EqualFold(element, text) })
}
