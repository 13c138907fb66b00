package tiers

import "github.com/gqlgen-ratelimit/ratelimit/bucket"

// leases are the words of the document. Empty is that of the tier, which is off by default.
var leases = map[string]bucket.LeaseMode{
	"": bucket.LeaseOff, bucket.LeaseOff.String(): bucket.LeaseOff, bucket.LeaseAuto.String(): bucket.LeaseAuto,
	bucket.LeaseAlways.String(): bucket.LeaseAlways,
}

// lease checks the word of a tier or an exception.
func (c *checker) lease(at path, word string) {
	if _, ok := leases[word]; !ok {
		c.fail(at.to("lease"), "lease %s is unknown; off, auto or always fits", echo(word))
	}
}
