package show_test

import (
	"net/http"
	"testing"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/internal/show"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// BenchmarkTold makes the headers and the extension of an answer under four limits, of which nothing is the matter.
func BenchmarkTold(b *testing.B) {
	d := ran(left("second", bucket.Points, 1000, 900), left("minute", bucket.Points, 1000, 800), left("hour", bucket.Points, 1000, 900),
		left("requests", bucket.Requests, 1000, 900))
	known, policy := &show.Policies{}, &tiers.Snapshot{}
	b.Run("headers", func(b *testing.B) {
		header := http.Header{}
		b.ReportAllocs()
		for b.Loop() {
			show.Headers(header, d, show.Draft10, known, policy)
		}
	})
	b.Run("extension", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			show.Extension(d)
		}
	})
}
