package edge

import (
	"errors"
	"io"
	"net/http"

	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/failure"
)

// upload is a body whose files are passed on as they come.
type upload struct {
	io.ReadCloser

	budgets *budgets
	arrival *arrival
	r       *http.Request
	// unpaid is how many bytes have come that nobody knew of before.
	unpaid int64
	// refusal is that of the bytes for which there was nothing left.
	refusal *refusal
	// judged says that the head was read, so that nobody answers with a refusal any more.
	judged bool
}

// errNoBytesLeft ends what is passed on when there are no bytes left for it.
var errNoBytesLeft = errors.New("edge: too many bytes from this address or API key")

// step is how many bytes that nobody knew of before are taken at once.
const step = 64 << 10

// Read passes bytes on, and takes them from the limits if nobody has said how many there are.
func (u *upload) Read(p []byte) (int, error) {
	if u.refusal != nil {
		return 0, errNoBytesLeft
	}
	n, err := u.ReadCloser.Read(p)
	if u.r.ContentLength < 0 {
		u.unpaid += int64(n)
	}
	if u.unpaid >= step || err == io.EOF {
		if u.refusal = u.budgets.take(u.r.Context(), u.arrival, Bytes, u.unpaid); u.refusal != nil {
			if u.judged {
				u.budgets.reporter.told(u.r.Context(), u.arrival, u.refusal, 0)
			}
			return 0, errNoBytesLeft
		}
		u.unpaid = 0
	}
	return n, err
}

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
