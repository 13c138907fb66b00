package ratelimitclient

import (
	"math"
	"net/http"
	"strings"
	"time"
)

// RetryAfter reads the Retry-After header of a response (RFC 9110, section 10.2.3): whole seconds, or
// a date, which is compared with the Date header of the same response so that the two clocks need not
// agree, and with this machine's clock if there is none. A date in the past is zero. It returns false
// if the header is absent or malformed.
func RetryAfter(header http.Header) (time.Duration, bool) {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if value == "" {
		return 0, false
	}
	if seconds, ok := deltaSeconds(value); ok {
		return seconds, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(at.Sub(now), 0), true
}

// deltaSeconds reads a number of digits and saturates. A sign makes it malformed.
func deltaSeconds(value string) (time.Duration, bool) {
	const longest = math.MaxInt64 / int64(time.Second)
	var seconds int64
	for i := range len(value) {
		c := value[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		seconds = min(seconds*10+int64(c-'0'), longest+1)
	}
	if seconds > longest {
		return math.MaxInt64, true
	}
	return time.Duration(seconds) * time.Second, true
}
