//go:build unix

package validation_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2/validator"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"github.com/gqlgen-ratelimit/ratelimit/validation"
)

// BenchmarkGrowth measures the processor time of validation for documents of 1, 10 and 100 times a size, by family. gqlparser's rules are
// measured as long as one document may be expected to take seconds.
func BenchmarkGrowth(b *testing.B) {
	const size, seconds = 120, 5 * time.Second
	for _, family := range worst {
		for _, of := range []struct {
			name  string
			rules func() *rules.Rules
			// growth is by how much longer ten times the document takes, at worst.
			growth int
		}{{"gqlparser", rules.NewDefaultRules, 1000}, {"linear", validation.Rules, 10}} {
			expected := time.Duration(0)
			for _, times := range [...]int{1, 10, 100} {
				if expected > seconds {
					break
				}
				b.Run(fmt.Sprintf("%s/%s/%d", family.name, of.name, times), func(b *testing.B) {
					parsed := document(b, family.text(times*size))
					before := processorTime(b)
					for b.Loop() {
						if errs := validator.ValidateWithRules(recursive, parsed, of.rules()); len(errs) > 0 {
							b.Fatal(errs)
						}
					}
					each := (processorTime(b) - before) / time.Duration(b.N)
					expected = each * time.Duration(of.growth)
					b.ReportMetric(each.Seconds()*1000, "cpu-ms/op")
					b.ReportMetric(0, "ns/op")
				})
			}
		}
	}
}

// processorTime is what the process has used so far.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
