package backend

import "github.com/gqlgen-ratelimit/ratelimit/bucket"

// Decline gives back what was taken of what is leased, for a take that was held, and returns the receipt of what is left to settle.
func (b *Store) Decline(receipt bucket.Receipt) (rest bucket.Receipt) {
	if b.leases == nil {
		return receipt
	}
	return b.leases.leased.Decline(receipt)
}

// Keep says that a take that was held is not declined.
func (b *Store) Keep(receipt bucket.Receipt) {
	if b.leases != nil {
		b.leases.leased.Keep(receipt)
	}
}
