package bucket

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// The keys in Redis, version 1 of their layout:
//
//	rl:NAMESPACE:{TENANT}:t           the bucket of the tenant
//	rl:NAMESPACE:{TENANT}:m:TEAM      the bucket of a team
//	rl:NAMESPACE:{TENANT}:u:USER      the bucket of a user
//	rl:NAMESPACE:{TENANT}:o:OPERATION the bucket of an operation
//	rl:NAMESPACE:{TENANT}:o:OPERATION:PART the bucket that a user, or a value of an argument, has of an operation
//	rl:NAMESPACE:{TENANT}:i:RECORD    the record of an idempotency key
//	rl:NAMESPACE:{TENANT}:s:RECEIPT   the marker of a settled receipt
//	rl:NAMESPACE:{TENANT}:c:CANDIDATE:… the buckets of the same owners under a candidate policy
//	rl:NAMESPACE:{TENANT}:n2:HOUR     the usage of the tenant in an hour, counted from 1970
//	rl:NAMESPACE:{TENANT}:n2:HOUR:u:UNIT the same in another unit than points and requests
//	rl:NAMESPACE:{TENANT}:n2:HOUR:f:FIELD the usage of a root field in that hour
//	rl:NAMESPACE:{TENANT}:l2:HOUR…    the same of what was admitted while the store was away
//	rl:NAMESPACE:{TENANT}:h:…         who leases parts of a bucket: the end is that of the key of the bucket
//	rl:NAMESPACE:{TENANT}:x           the override records of the tenant and of its other owners
//	rl:NAMESPACE:a:ANSWER             an answer that NewRedisAnswers has put there
//	rl:NAMESPACE:fleet                the instances that share the store, in whatever slot that is
//
// The braces are the hash tag of Redis Cluster: all keys of a tenant are in one slot. A later layout
// takes other letters, so that both can be told apart in one server. The layout of the values is
// described in package lua.
// A pattern of [FindUsage] has those of usage.
var infixes = [...]string{
	Tenant: ":t", Team: ":m:", User: ":u:", Operation: ":o:", partKey: ":o:",
	recordKey: ":i:", settledKey: ":s:", usageKey: ":n2:", localUsageKey: ":l2:", overridesKey: ":x", fleetKey: ":fleet",
}

const (
	// defaultNamespace is the namespace of the keys where none is configured.
	defaultNamespace = "main"
	candidateInfix   = ":c:"
	holdingsInfix    = ":h"
	answerInfix      = ":a:"
	digestBytes      = 16
	maxLiteralBytes  = 64
)

// keyKind is what is kept under a key. Those before these are the levels of owners.
type keyKind uint8

const (
	// partKey is the bucket of a part of an operation.
	partKey keyKind = iota + keyKind(Operation) + 1
	recordKey
	settledKey
	usageKey
	localUsageKey
	overridesKey
	fleetKey
)

// address is what something is kept under among what belongs to a tenant. The name is not yet one that fits a key.
type address struct {
	kind keyKind
	name string
	// part is that of a partKey.
	part string
	// candidate is the id of the candidate policy whose bucket it is, or empty.
	candidate string
	// held says that it is who leases parts of the bucket, and not the bucket.
	held bool
}

func bucketAddress(owner *Owner, candidate string) address {
	kind := keyKind(owner.Level)
	if owner.Part != "" {
		kind = partKey
	}
	return address{kind: kind, name: owner.Name, part: owner.Part, candidate: candidate}
}

// holdingsAddress is of who leases parts of the bucket of an owner.
func holdingsAddress(owner *Owner) address {
	a := bucketAddress(owner, "")
	a.held = true
	return a
}

func recordAddress(claim *idempotency.Claim) address {
	return address{kind: recordKey, name: claim.RecordName()}
}

func settledAddress(receipt *Receipt) address {
	return address{kind: settledKey, name: base64.RawURLEncoding.EncodeToString(receipt.id[:])}
}

// segment encodes a name that came from outside for use in a key. A name of 1 to 64 characters of
// A–Z a–z 0–9 _ . and - stays as it is, so that keys can be read. Anything else becomes ~ and the
// base64url of the first 128 bits of its SHA-256: as ~ is not among the literal characters, no two
// names share a segment.
func segment(name string) string {
	if literal(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return "~" + base64.RawURLEncoding.EncodeToString(sum[:digestBytes])
}

func literal(name string) bool {
	if name == "" || len(name) > maxLiteralBytes {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '.', c == '-':
		default:
			return false
		}
	}
	return true
}

// keyspace makes the keys of one tenant in Redis.
type keyspace struct {
	namespace, prefix string
}

func newKeyspace(namespace, tenant string) keyspace {
	return keyspace{namespace, "rl:" + namespace + ":{" + segment(tenant) + "}"}
}

func (k keyspace) key(a address) string {
	name := a.name
	if a.kind > keyKind(Tenant) && a.kind < overridesKey {
		name = segment(name)
	}
	switch {
	case a.kind == partKey:
		// No segment has a colon.
		name += ":" + segment(a.part)
	case a.part != "":
		name += ":" + a.part
	}
	switch {
	case a.kind == fleetKey:
		return "rl:" + k.namespace + infixes[fleetKey]
	case a.candidate != "":
		// It is a literal segment.
		return k.prefix + candidateInfix + a.candidate + infixes[a.kind] + name
	case a.held:
		return k.prefix + holdingsInfix + infixes[a.kind] + name
	default:
		return k.prefix + infixes[a.kind] + name
	}
}

// OverridesKey returns the key under which a [Redis] keeps the override records of a tenant. An empty namespace means main. A tenant of 1 to 64
// characters of A-Z a-z 0-9 _ . and - stands in it as it is called, any other one as ~ and a hash of its name.
func OverridesKey(namespace, tenant string) string {
	return newKeyspace(cmp.Or(namespace, defaultNamespace), tenant).key(address{kind: overridesKey})
}

// checkNamespace returns why a namespace cannot stand in a key.
func checkNamespace(namespace string) error {
	if !literal(namespace) {
		return fmt.Errorf("bucket: namespace %.80q: 1 to %d characters of A-Z a-z 0-9 _ . - fit", namespace, maxLiteralBytes)
	}
	return nil
}

// rights are the commands that the calls of a [Redis] and its scripts need: the server checks those
// inside scripts as well.
var rights = []string{
	"evalsha", "eval", "time", "get", "set", "getrange", "setrange", "del", "unlink",
}

// clusterRights are what a client of a Redis Cluster needs besides.
var clusterRights = []string{"cluster|slots"}

// ACLRules returns the least rights in Redis with which everything in this package works, as rules for
// ACL SETUSER: the keys of a namespace, where empty means main, and single commands.
// cluster adds what a client of a Redis Cluster needs. Redis from 6.2 on and Valkey know all these
// rules. They are enough for the clients that this package makes; options of one's own can need more,
// such as select for a numbered database. The error is that of a namespace that [RedisConfig] refuses.
func ACLRules(namespace string, cluster bool) ([]string, error) {
	if namespace == "" {
		namespace = defaultNamespace
	}
	if err := checkNamespace(namespace); err != nil {
		return nil, err
	}
	rules := []string{"resetkeys", "~rl:" + namespace + ":*", "resetchannels", "-@all"}
	for _, right := range rights {
		rules = append(rules, "+"+right)
	}
	if cluster {
		for _, right := range clusterRights {
			rules = append(rules, "+"+right)
		}
	}
	return rules, nil
}
