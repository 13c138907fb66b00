package edge

import (
	"net/http"

	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/failure"
)

// uploadWriter cuts the answer to an upload that cannot be read, which gqlgen gives without asking anybody, and in which it repeats names that
// were sent: 60 kB of them made 360 kB.
type uploadWriter struct {
	http.ResponseWriter

	arrival *arrival
}

// unreadableUpload is the answer in the place of a long one.
const unreadableUpload = `{"errors":[{"message":"the upload cannot be read"}],"data":null}`

// Unwrap gives http.ResponseController the writer beneath.
func (w *uploadWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write passes on what is short, or the answer to an operation. gqlgen writes an answer at once.
func (w *uploadWriter) Write(p []byte) (int, error) {
	if w.arrival.began.Load() || len(p) <= failure.MaxMessages {
		return w.ResponseWriter.Write(p)
	}
	if _, err := w.ResponseWriter.Write([]byte(unreadableUpload)); err != nil {
		return 0, err
	}
	return len(p), nil
}
