package inbound

import (
	"net/http"
	"strings"
)

// Upgrades says whether the headers ask for a WebSocket: whether one of the protocols that Upgrade lists is it, in whichever
// place (RFC 9110, section 7.8). That is how WebSocket libraries read it.
func Upgrades(header http.Header) bool {
	// Nearly none has the header.
	return header["Upgrade"] != nil && HasToken(header, "Upgrade", "websocket")
}

// HasToken says whether a header lists a token, in any case, in any of its lines (RFC 9110, section 5.6.1).
func HasToken(header http.Header, name, token string) bool {
	for _, line := range header[http.CanonicalHeaderKey(name)] {
		for listed := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.Trim(listed, " \t"), token) {
				return true
			}
		}
	}
	return false
}
