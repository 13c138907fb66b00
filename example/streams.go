package main

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// limitTime ends each request when its time is over: a stream, which is slow by nature, after streamTimeout, and any other after
// writeTimeout, by which its answer has to be written. A client that still listens to a stream connects again. What a client of a stream
// can be slow with stays bounded: the door gives its body readTimeout as any other, and it takes in what is written within writeTimeout.
func limitTime(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		upgrade, stream := r.Header.Get("Upgrade") != "", isStream(r)
		most := writeTimeout
		if upgrade || stream {
			most = streamTimeout
		}
		ctx, cancel := context.WithTimeout(r.Context(), most)
		defer cancel()
		if stream && !upgrade {
			// A connection that becomes a WebSocket loses its deadlines, and one that does not shall keep them.
			w = streamWriter{w}
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func isStream(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return strings.Contains(accept, "text/event-stream") || strings.Contains(accept, "multipart/mixed")
}

// streamWriter gives each message the time that other requests have for their whole answer.
type streamWriter struct{ http.ResponseWriter }

func (w streamWriter) Write(p []byte) (int, error) {
	w.extend()
	return w.ResponseWriter.Write(p)
}

// FlushError is what http.ResponseController calls.
func (w streamWriter) FlushError() error {
	w.extend()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (w streamWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w streamWriter) extend() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTimeout))
}
