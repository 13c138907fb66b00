package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// limitStreams gives streams, which are slow by nature, a longer time than the server gives other requests, and ends them
// when it is over: a client that still listens connects again. What a client of a stream can be slow with stays bounded: its
// body comes within readTimeout as any other, and it takes in what is written within writeTimeout.
func limitStreams(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		upgrade := r.Header.Get("Upgrade") != ""
		if !upgrade && !isStream(r) {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), streamTimeout)
		defer cancel()
		r = r.WithContext(ctx)
		if !upgrade {
			// A connection that becomes a WebSocket loses its deadlines, and one that does not shall keep them.
			w = streamWriter{w}
			r.Body = &streamBody{ReadCloser: r.Body, controller: http.NewResponseController(w)}
		}
		next.ServeHTTP(w, r)
	})
}

func isStream(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return strings.Contains(accept, "text/event-stream") || strings.Contains(accept, "multipart/mixed")
}

// streamBody moves the end of reading when the whole body has come. From then on the server reads to see whether the client
// leaves, and would take that end for it.
type streamBody struct {
	io.ReadCloser

	controller *http.ResponseController
}

func (b *streamBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		// A writer without deadlines has nothing to move.
		_ = b.controller.SetReadDeadline(time.Now().Add(streamTimeout + writeTimeout))
	}
	return n, err
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
