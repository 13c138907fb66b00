// Package placement keeps tenants in several stores, each tenant in one of them: a [Store] is a bucket.Store over stores with names. A [Map] says which stores
// there are and which of them a tenant may be in, a few candidates that are found by hashing, so that who loads a store, or a store that dies, touches
// the few tenants that have it among theirs.
//
// A map has a generation, on which all instances agree ([Record]). A tenant that changes its store starts full there: nothing is carried from one store to another.
package placement
