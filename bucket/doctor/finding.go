package doctor

import (
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// Severity says how bad a finding is.
type Severity string

// The severities. With an Error the limiter does not work, or its budgets do not hold; with a Warning that
// happens when a server fails or is busy; a Note is something to know.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// AtLeast says whether the severity is as bad as the other.
func (s Severity) AtLeast(other Severity) bool { return s.rank() >= other.rank() }

func (s Severity) rank() int {
	return slices.Index([]Severity{Note, Warning, Error}, s)
}

// Code names what is looked for. Codes are stable: they are added, and never renamed.
type Code string

// The codes of clients. Those of package bucket, which say what is wrong with the options, stand beside them.
const (
	DeadlineIgnored     Code = bucket.HazardDeadlineIgnored
	Retries             Code = bucket.HazardRetries
	RedirectsOff        Code = bucket.HazardRedirectsOff
	DialTimeout         Code = bucket.HazardDialTimeout
	DialAttempts        Code = bucket.HazardDialAttempts
	SocketTimeout       Code = bucket.HazardSocketTimeout
	PoolTimeout         Code = bucket.HazardPoolTimeout
	TopologyReload      Code = bucket.HazardTopologyReload
	MaintenanceRelaxing Code = bucket.HazardMaintenance
	ReadsFromReplicas   Code = bucket.HazardReadsFromReplicas
	UnknownClient       Code = bucket.HazardUnknownClient
	// NoBreaker is a client without a breaker.
	NoBreaker Code = "no-breaker"
	// TLSOff is a connection without TLS to another machine.
	TLSOff Code = "tls-off"
)

// The codes of reaching a server.
const (
	// Unreachable is a node to which no connection could be made.
	Unreachable Code = "unreachable"
	// Unanswered is a node that is connected and does not answer.
	Unanswered Code = "unanswered"
	// NotAuthenticated is a node that refuses user and password.
	NotAuthenticated Code = "not-authenticated"
	// DatabaseInCluster is a numbered database in a cluster, which has none.
	DatabaseInCluster Code = "database-in-cluster"
	// ClusterAsSingle is a node of a cluster that is used as a single server.
	ClusterAsSingle Code = "cluster-as-single"
	// NotACluster is a single server that is used as a cluster.
	NotACluster Code = "not-a-cluster"
	// CouldNotLook is a source of facts that is forbidden.
	CouldNotLook Code = "could-not-look"
)

// The codes of rights and scripts.
const (
	// MissingRight is a command, or a map of slots, that the user may not use.
	MissingRight Code = "missing-right"
	// MissingKeys are the keys of the namespace, which the user may not use.
	MissingKeys Code = "missing-keys"
	// ScriptsRefused is a script that does not run.
	ScriptsRefused Code = "scripts-refused"
	// StructMissing is a server without the struct library.
	StructMissing Code = "struct-missing"
	// CommandFailed is a command that fails for another reason than rights.
	CommandFailed Code = "command-failed"
)

// The codes of servers.
const (
	// OldVersion is a version without what the scripts need, or one that is not tested.
	OldVersion Code = "old-version"
	// EvictingPolicy is a server that evicts keys when its memory is full.
	EvictingPolicy Code = "evicting-policy"
	// EvictedKeys are keys that were evicted.
	EvictedKeys Code = "evicted-keys"
	// MemoryNearlyFull is a server close to its limit of memory.
	MemoryNearlyFull Code = "memory-nearly-full"
	// MemoryFull is a server that refuses writes because its memory is full.
	MemoryFull Code = "memory-full"
	// MemoryUnbounded is a server without a limit of memory.
	MemoryUnbounded Code = "memory-unbounded"
	// NoPersistence is a server that forgets everything when it is restarted.
	NoPersistence Code = "no-persistence"
	// SnapshotsOnly is a server that forgets what came after its last snapshot.
	SnapshotsOnly Code = "snapshots-only"
	// ReadOnlyReplica is a replica that is used as a master.
	ReadOnlyReplica Code = "read-only-replica"
	// NoReplica is a master without replicas.
	NoReplica Code = "no-replica"
	// ScriptTimeLimit is a server on which a script of somebody else can run for long.
	ScriptTimeLimit Code = "script-time-limit"
	// FullCoverage is a cluster that refuses everything when it has lost one slot.
	FullCoverage Code = "full-coverage"
	// ClusterState is a cluster that has lost slots.
	ClusterState Code = "cluster-state"
	// ClockApart is a server whose clock is far from that of this machine.
	ClockApart Code = "clock-apart"
	// Slow is a server whose answers come late for the timeout of the store.
	Slow Code = "slow"
)

// Finding is one result.
type Finding struct {
	Severity Severity `json:"severity"`
	Code     Code     `json:"code"`
	// Node is the address of the server, or empty for the client itself.
	Node string `json:"node,omitempty"`
	// Seen is what was found.
	Seen string `json:"seen"`
	// Why says why it matters.
	Why string `json:"why"`
	// Remedy says what to do.
	Remedy string `json:"remedy"`
}
