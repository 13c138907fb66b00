package relay

import "context"

// CarryWithoutLease relays although another daemon may do so.
func CarryWithoutLease(ctx context.Context, r *Relay) { r.carry(ctx) }
