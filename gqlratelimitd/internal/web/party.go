package web

import (
	"cmp"
	"net/netip"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/access"
	"github.com/gqlgen-ratelimit/ratelimit/internal/inbound"
)

// party is for whom a request counts, in everything that this API bounds: requests and changes in a minute, bodies that are read, requests that are
// under way, and those that wait. Each bound has three parts:
//
//   - a sender has one: a token, with those that come from it. So nobody uses up what belongs to another token, nor has more by issuing some;
//   - a person has four times as much for all of their senders;
//   - what is urgent has a reserve of its sender beside both, which nothing else takes. So a block, a mode switch, a revert and the end of
//     a token are possible whatever others ask for.
type party struct {
	// sender is a token, by its [access.Token.Root], a person whom an issuer of OpenID Connect knows, or the address of a stranger. Person is who answers for it.
	sender, person string
	// urgent says that the request ends an incident, and comes from somebody who may block every tenant, with no token that comes from another one.
	urgent bool
}

// personShare is how many times the part of a sender a person has.
const personShare = 4

// partyOf is for whom a request of an actor counts.
func partyOf(actor *access.Actor, urgent bool) party {
	return party{
		sender: "sender " + cmp.Or(actor.Root, actor.Person()), person: "person " + actor.Person(),
		urgent: urgent && actor.Root == actor.Token && access.Authorize(*actor, access.BlockTenant, "") == nil,
	}
}

// strangerOf is for whom a request counts of which nobody knows who asks: its address, IPv6 by /64.
func strangerOf(from netip.Addr) party {
	name := "address " + inbound.Network(from, inbound.ClientBits)
	return party{sender: name, person: "person of " + name}
}
