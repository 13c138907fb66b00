// Package graph is the GraphQL API of the control plane, for people and pages. It knows control, and what control says it passes on:
// nothing is decided here.
//
// The API is priced and limited by the library that it controls: its schema has costs, policy.yaml is a policy of its own for actors,
// and a front door bounds what a document takes before it has a price. Whoever answers for several tokens has one budget for all.
//
// Errors have extensions.code: see [CodeConflict] and those that follow it, besides those of package ratelimitclient.
package graph
