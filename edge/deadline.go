package edge

import (
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// deadlines bound how long a connection, or a stream of HTTP/2, is read for one request.
type deadlines struct {
	logger *slog.Logger
	// unknown is said once.
	unknown sync.Once
}

// set has the rest of a request read until then. net/http lifts the deadline when the body has ended.
func (d *deadlines) set(w http.ResponseWriter, at time.Time) {
	if err := http.NewResponseController(w).SetReadDeadline(at); errors.Is(err, http.ErrNotSupported) {
		d.unknown.Do(func() {
			d.logger.Warn("edge: the server has no deadline for a single request (http.ResponseController): a body may " +
				"take as long as the server lets it")
		})
	}
}

// patience is how long the rest of a body that nobody reads may take, which net/http throws away before it answers.
const patience = time.Second

// hurry lets a refused request have little time for what is left of its body, and a body that is too large or too slow
// none.
func (d *deadlines) hurry(w http.ResponseWriter, r *http.Request, code string) {
	if r.ProtoMajor != 1 || r.ContentLength == 0 {
		return
	}
	if code == ratelimitclient.CodePayloadTooLarge || code == ratelimitclient.CodePayloadTooSlow {
		w.Header().Set("Connection", "close")
		return
	}
	d.set(w, time.Now().Add(patience))
}
