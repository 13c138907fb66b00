package doctor

import (
	"slices"
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

// Finding is one result. Codes are stable: they are added, and never renamed. Those of redisclient.Hazards say what is
// wrong with the options of the client; the others are
//
//	no-breaker           a client without a breaker
//	tls-off              a connection without TLS to another machine
//	unreachable          a node to which no connection could be made
//	unanswered           a node that is connected and does not answer
//	not-authenticated    a node that refuses user and password
//	database-in-cluster  a numbered database in a cluster, which has none
//	cluster-as-single    a node of a cluster that is used as a single server
//	not-a-cluster        a single server that is used as a cluster
//	could-not-look       a source of facts that is forbidden
//	missing-right        a command, or a map of slots, that the user may not use
//	missing-keys         the keys of the namespace, which the user may not use
//	scripts-refused      a script that does not run
//	struct-missing       a server without the struct library
//	command-failed       a command that fails for another reason than rights
//	old-version          a version without what the scripts need, or one that is not tested
//	evicting-policy      a server that evicts keys when its memory is full
//	evicted-keys         keys that were evicted
//	memory-nearly-full   a server close to its limit of memory
//	memory-full          a server that refuses writes because its memory is full
//	memory-unbounded     a server without a limit of memory
//	no-persistence       a server that forgets everything when it is restarted
//	snapshots-only       a server that forgets what came after its last snapshot
//	read-only-replica    a replica that is used as a master
//	no-replica           a master without replicas
//	script-time-limit    a server on which a script of somebody else can run for long
//	full-coverage        a cluster that refuses everything when it has lost one slot
//	cluster-state        a cluster that has lost slots
//	clock-apart          a server whose clock is far from that of this machine
//	slow                 a server whose answers come late for the timeout of the store
type Finding struct {
	Severity Severity `json:"severity"`
	// Code names what was found, as listed above.
	Code string `json:"code"`
	// Node is the address of the server, or empty for the client itself.
	Node string `json:"node,omitempty"`
	// Seen is what was found.
	Seen string `json:"seen"`
	// Why says why it matters.
	Why string `json:"why"`
	// Remedy says what to do.
	Remedy string `json:"remedy"`
}
