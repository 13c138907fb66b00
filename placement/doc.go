// Package placement keeps tenants in several stores, each tenant in one of them: a [Store] is a bucket.Store over stores with names. A [Map] says which stores
// there are and which of them a tenant may be in, a few candidates that are found by hashing, so that who loads a store, or a store that dies, touches
// the few tenants that have it among theirs.
//
// A map has a generation, on which all instances agree ([Record]). Two instances that know different ones never both admit a tenant: a tenant leaves a store by a
// generation, and from then on no call of that store does anything for it. What it owed is carried when it is next asked for, and no move refills anything.
package placement
