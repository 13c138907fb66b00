package sink

import (
	"net/http"
	"slices"
	"strings"
)

const headerExpose = "Access-Control-Expose-Headers"

// exposeHeaders adds those of the names that the answer has to the list of what scripts of other origins may read,
// behind what stands there already. It is called when the answer leaves, so that it sees what the application has set
// or removed until then.
func exposeHeaders(header http.Header, names []string) {
	if len(names) == 0 {
		return
	}
	var listed []string
	for _, value := range header[headerExpose] {
		for name := range strings.SplitSeq(value, ",") {
			if name = strings.TrimSpace(name); name != "" {
				listed = append(listed, name)
			}
		}
	}
	had := len(listed)
	for _, name := range names {
		is := func(other string) bool { return strings.EqualFold(other, name) }
		if _, sent := header[http.CanonicalHeaderKey(name)]; sent && !slices.ContainsFunc(listed, is) {
			listed = append(listed, name)
		}
	}
	// An asterisk stays where it is: it means nothing where cookies are sent along.
	if len(listed) > had {
		header[headerExpose] = []string{strings.Join(listed, ", ")}
	}
}
