package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// readInfo reads what the server says of itself, or reports that it does not. It returns false if the server
// has fallen silent.
func (n *node) readInfo(ctx context.Context) bool {
	cmd, err := n.do(ctx, "info")
	if forbidden(err) {
		n.add(Note, "could-not-look", "INFO is refused: "+printable(err.Error()),
			"version, memory, eviction, persistence and replicas were not examined",
			"let somebody who may run INFO check redis_version, maxmemory, maxmemory_policy, evicted_keys, aof_enabled and connected_slaves, "+
				"or examine with a user of its own: ACL SETUSER doctor +info +config|get +cluster|info and the rights of the limiter")
		return true
	}
	if n.silent(err) {
		return false
	}
	text, _ := cmd.Text()
	n.info = map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			n.info[name] = value
		}
	}
	return true
}

// number reads a number of INFO. It returns false if there is none.
func (n *node) number(name string) (int64, bool) {
	value, err := strconv.ParseInt(n.info[name], 10, 64)
	return value, err == nil
}

// The versions of Redis that matter. SET takes PXAT from 6.2 on, and the tests run with 7 and later.
const (
	neededMajor, neededMinor = 6, 2
	testedMajor              = 7
)

// version looks for servers that are too old.
func (n *node) version() {
	version := n.info["redis_version"]
	first, rest, _ := strings.Cut(version, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, err := strconv.Atoi(first)
	if err != nil {
		return
	}
	minor, _ := strconv.Atoi(second)
	switch {
	case major < neededMajor || major == neededMajor && minor < neededMinor:
		n.add(Error, "old-version", "version "+printable(version),
			"SET knows no PXAT before 6.2, so that every take fails", "upgrade to Redis 7 or Valkey")
	case major < testedMajor:
		n.add(Note, "old-version", "version "+printable(version),
			"it has what the scripts need, but this library is tested with Redis 7 and Valkey", "upgrade to Redis 7 or Valkey when you can")
	}
}

// nearlyFull is the share of the memory from which on it is reported, in percent.
const nearlyFull = 80

// memory looks for what makes a server forget buckets, or refuse them.
func (n *node) memory() {
	most, known := n.number("maxmemory")
	policy := n.info["maxmemory_policy"]
	if policy != "" && policy != "noeviction" {
		severity, seen := Error, "maxmemory-policy is "+printable(policy)
		if known && most == 0 {
			severity, seen = Warning, seen+", without a maxmemory so far"
		}
		n.add(severity, "evicting-policy", seen, "a bucket that is evicted is full again, and an idempotency key that is evicted is forgotten",
			"give the limiter a server of its own, or a cluster, with maxmemory-policy noeviction")
	}
	if evicted, _ := n.number("evicted_keys"); evicted > 0 {
		n.add(Warning, "evicted-keys", fmt.Sprintf("%d keys were evicted since the server started", evicted),
			"those of the limiter among them were full budgets again", "set maxmemory-policy noeviction and give the server more memory; a restart counts anew")
	}
	if !known {
		return
	}
	if most == 0 {
		n.add(Note, "memory-unbounded", "maxmemory is not set",
			"the server grows until the machine has no memory and the kernel ends it", "set maxmemory below the memory of the machine, and watch it")
		return
	}
	if used, _ := n.number("used_memory"); used/nearlyFull >= most/100 {
		n.add(Warning, "memory-nearly-full", fmt.Sprintf("%d of %d bytes are used", used, most),
			"a server that is full refuses every charge (OOM) or, with an evicting policy, forgets buckets", "raise maxmemory, or find what fills the server")
	}
}

// replication looks for a master that is none, and for one that nobody can replace.
func (n *node) replication() {
	if enabled, known := n.number("cluster_enabled"); known {
		switch {
		case n.cluster && enabled == 0:
			n.add(Error, "not-a-cluster", "a single server, used as a cluster", "every call fails, because there is no map of slots",
				"use a client for a single server: leave redisclient.Config.Cluster and cluster=true away")
		case !n.cluster && enabled == 1:
			n.add(Error, "cluster-as-single", "a node of a cluster, used as a single server", "calls for slots of other nodes fail (MOVED)",
				"use a client for clusters: redisclient.Config.Cluster, cluster=true in the URL, or several addresses")
		}
	}
	switch n.info["role"] {
	case "slave":
		if n.role == roleUnknown && !n.cluster {
			n.add(Error, "read-only-replica", "a replica of "+printable(n.info["master_host"])+":"+printable(n.info["master_port"]),
				"it takes no writes, so that every take fails", "use the address of the master, or Sentinels, which know it")
		}
		n.role = roleReplica
	case "master":
		n.role = roleMaster
		if replicas, known := n.number("connected_slaves"); known && replicas == 0 {
			severity := Note
			if n.cluster {
				severity = Warning
			}
			n.add(severity, "no-replica", "a master without replicas", "when it is lost its budgets are away until it is back", "add a replica, with Sentinels or in the cluster")
		}
	}
}

// config reads one parameter. It returns false, and reports nothing, if that is not to be.
func (n *node) config(ctx context.Context, name string) (string, bool) {
	cmd, err := n.do(ctx, "config", "get", name)
	if err != nil {
		return "", false
	}
	switch reply := cmd.Val().(type) {
	case map[any]any:
		value, ok := reply[name].(string)
		return value, ok
	case []any:
		if len(reply) == 2 {
			value, ok := reply[1].(string)
			return value, ok
		}
	}
	return "", false
}

// persistence looks for a server that starts empty.
func (n *node) persistence(ctx context.Context) {
	log, known := n.number("aof_enabled")
	if !known || log != 0 {
		return
	}
	snapshots, known := n.config(ctx, "save")
	switch {
	case !known:
		n.add(Note, "could-not-look", "there is no append-only file, and CONFIG GET save is refused",
			"whether the server takes snapshots was not examined: without any, every budget is full after a restart",
			"look at the persistence of the server, or in the console of whoever runs it")
	case snapshots == "":
		n.add(Warning, "no-persistence", "neither an append-only file nor snapshots",
			"after a restart every budget is full and every idempotency key forgotten", "set appendonly yes and appendfsync everysec")
	default:
		n.add(Note, "snapshots-only", "snapshots ("+printable(snapshots)+") and no append-only file",
			"after a crash budgets are as full as they were at the last snapshot", "set appendonly yes and appendfsync everysec, which bounds that to a second")
	}
}

// longScript is how long a script may run, in milliseconds, before others can end it, by default of Redis.
const longScript = 5000

// scriptTime looks for a server that scripts of others can hold for long.
func (n *node) scriptTime(ctx context.Context) {
	value, known := n.config(ctx, "lua-time-limit")
	limit, err := strconv.ParseInt(value, 10, 64)
	if !known || err != nil || limit > 0 && limit <= longScript {
		return
	}
	seen := fmt.Sprintf("lua-time-limit is %dms", limit)
	if limit <= 0 {
		seen = "lua-time-limit is off"
	}
	n.add(Note, "script-time-limit", seen, "a script of another application that runs wild holds the server for as long, and nobody can end it; those of this library take less than a millisecond",
		fmt.Sprintf("set lua-time-limit (busy-reply-threshold) to %d or less, or give the limiter a server of its own", longScript))
}

// coverage looks for a cluster that fails as a whole.
func (n *node) coverage(ctx context.Context) {
	if enabled, known := n.number("cluster_enabled"); known && enabled == 0 {
		return
	}
	n.clusterState(ctx)
	full, known := n.config(ctx, "cluster-require-full-coverage")
	switch {
	case !known:
		n.add(Note, "could-not-look", "CONFIG GET cluster-require-full-coverage is refused",
			"with yes, which is the default of Redis, a cluster that loses one shard refuses the tenants of all",
			"look at the parameters of the cluster: no is right for a limiter")
	case full == "yes":
		n.add(Warning, "full-coverage", "cluster-require-full-coverage is yes", "a cluster that loses one shard refuses the tenants of all",
			"set cluster-require-full-coverage no on every node")
	}
}

// clusterState looks for slots that nobody serves.
func (n *node) clusterState(ctx context.Context) {
	cmd, err := n.do(ctx, "cluster", "info")
	if err != nil {
		n.add(Note, "could-not-look", "CLUSTER INFO is refused", "whether all slots are served was not examined",
			"let somebody who may run CLUSTER INFO check that cluster_state is ok")
		return
	}
	text, _ := cmd.Text()
	facts := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			facts[name] = value
		}
	}
	const slots = "16384"
	if state, served := facts["cluster_state"], facts["cluster_slots_ok"]; state != "ok" || served != slots {
		n.add(Error, "cluster-state", fmt.Sprintf("cluster_state is %s, with %s of %s slots served", printable(state), printable(served), slots),
			"calls of tenants in the other slots fail, and with cluster-require-full-coverage those of all", "bring the missing nodes back, or redis-cli --cluster fix")
	}
}
