// Package websocket knows the wire of WebSockets (RFC 6455) as far as a door has to: whether a request can become one, and what is read
// of it then.
package websocket

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/gqlgen-ratelimit/ratelimit/internal/inbound"
)

// WithoutUpgrade returns the request without an upgrade to something that is no WebSocket, which a server may ignore (RFC
// 9110, section 7.8). gqlgen would take it for the handshake of one.
func WithoutUpgrade(r *http.Request) *http.Request {
	plain := new(http.Request)
	*plain = *r
	plain.Header = r.Header.Clone()
	plain.Header.Del("Upgrade")
	return plain
}

// IsHandshake says whether the request can become a WebSocket (RFC 6455, section 4.2.1).
func IsHandshake(r *http.Request) bool {
	keys := r.Header["Sec-Websocket-Key"]
	if r.Method != http.MethodGet || r.ProtoMajor != 1 || !r.ProtoAtLeast(1, 1) || len(keys) != 1 ||
		!inbound.HasToken(r.Header, "Connection", "upgrade") || r.Header.Get("Sec-Websocket-Version") != "13" {
		return false
	}
	nonce, err := base64.StdEncoding.DecodeString(strings.TrimSpace(keys[0]))
	return err == nil && len(nonce) == 16
}

// Hijacks says whether a connection can be taken over from the writer, as far as that can be known before.
func Hijacks(w http.ResponseWriter) bool {
	for {
		switch beneath := w.(type) {
		case http.Hijacker:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = beneath.Unwrap()
		default:
			return false
		}
	}
}
