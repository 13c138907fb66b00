package doctor

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"math"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/lua"
)

// probeLife is how long keys of the doctor live, in milliseconds, should it not remove them.
const probeLife = 5000

// tryCommands runs each command that the scripts use on a key of the doctor, and returns the errors of
// those that fail: their names and what the server says, in turn. Nothing is written without an expiry:
// SETRANGE with nothing changes a key only if it is there.
const tryCommands = `
local failed = {}
local function try(name, reply)
  if type(reply) == 'table' and reply.err then
    failed[#failed + 1] = name
    failed[#failed + 1] = reply.err
  end
  return reply
end
local clock = try('time', redis.pcall('TIME'))
if clock.err then
  try('set', redis.pcall('SET', KEYS[1], 'doctor', 'PX', ARGV[1]))
else
  try('set', redis.pcall('SET', KEYS[1], 'doctor', 'PXAT', string.format('%.0f', clock[1] * 1000 + ARGV[1])))
end
try('get', redis.pcall('GET', KEYS[1]))
try('getrange', redis.pcall('GETRANGE', KEYS[1], 0, 7))
try('setrange', redis.pcall('SETRANGE', KEYS[1], 0, ''))
try('del', redis.pcall('DEL', KEYS[1]))
return failed`

// checkCommands asks the server what the user may do, and runs nothing: for replicas, which have rights of
// their own. It needs Redis 7.
//
//nolint:dupword // Lua closes its blocks so.
const checkCommands = `
if not redis.acl_check_cmd then
  return {}
end
local failed = {}
local function check(name, ...)
  if not redis.acl_check_cmd(name, ...) then
    failed[#failed + 1] = name
    failed[#failed + 1] = "can't run this command"
  end
end
check('time')
check('set', ARGV[1], 'doctor', 'PXAT', '1')
check('get', ARGV[1])
check('getrange', ARGV[1], '0', '7')
check('setrange', ARGV[1], '0', '')
check('del', ARGV[1])
check('unlink', ARGV[1])
return failed`

// mostSlots is how many keys are tried until one is in a slot of the node.
const mostSlots = 1000

// rights tries each command that the library uses.
func (n *node) rights(ctx context.Context) {
	// A script that nobody has.
	if _, err := n.do(ctx, "evalsha", strings.Repeat("0", len(lua.Load().Take.SHA)), 0); err != nil {
		n.failed("evalsha", err.Error())
	}
	if n.cluster && !n.has("not-a-cluster") {
		if _, err := n.do(ctx, "cluster", "slots"); err != nil {
			n.failed("cluster|slots", err.Error())
		}
	}
	if n.role == roleReplica {
		if cmd, err := n.do(ctx, "eval", checkCommands, 0, n.key()); err != nil {
			n.failed("eval", err.Error())
		} else {
			n.refused(cmd)
		}
		return
	}
	for range mostSlots {
		key := n.key()
		cmd, err := n.do(ctx, "eval", tryCommands, 1, key, probeLife)
		if n.cluster && movedAway(err) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			n.failed("eval", err.Error())
			return
		}
		n.refused(cmd)
		if _, err := n.do(ctx, "unlink", key); err != nil {
			n.failed("unlink", err.Error())
		}
		return
	}
}

// movedAway says whether a key is in a slot of another node, or in one that is moving.
func movedAway(err error) bool {
	return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK") || redis.HasErrorPrefix(err, "TRYAGAIN") ||
		redis.HasErrorPrefix(err, "CLUSTERDOWN Hash slot not served")
}

// key returns a key that nobody else has. It is named like the bucket of a tenant.
func (n *node) key() string {
	return "rl:" + n.exam.config.Namespace + ":{~doctor-" + rand.Text() + "}:t"
}

// refused reports what a script has returned: names of commands, and the errors that they met.
func (n *node) refused(cmd *redis.Cmd) {
	reply, err := cmd.StringSlice()
	for i := 0; err == nil && i+1 < len(reply); i += 2 {
		n.failed(reply[i], reply[i+1])
	}
}

// failed reports a command that fails.
func (n *node) failed(name, text string) {
	line := "ACL SETUSER " + n.user() + " "
	switch {
	case strings.HasPrefix(text, "NOSCRIPT"):
	case strings.Contains(text, "can't run this"), strings.Contains(text, "permissions to run"):
		n.add(Error, "missing-right", "user "+n.user()+" may not run "+strings.ToUpper(name),
			"calls that need it fail", line+"+"+name+n.everywhere()+"; bucket.ACLRules returns all rules")
	case strings.Contains(text, "can't access at least one of the keys"), strings.Contains(text, "permissions to access"):
		n.keys(line)
	case strings.HasPrefix(text, "OOM"), strings.Contains(text, "when used memory >"):
		if n.has("memory-full") {
			return
		}
		n.add(Error, "memory-full", "the server refuses writes, because its memory is full (OOM)", "every charge fails", "raise maxmemory, or find what fills the server")
	case strings.HasPrefix(text, "READONLY"):
		if n.role == roleUnknown {
			n.role = roleReplica
			n.add(Error, "read-only-replica", "the server takes no writes (READONLY)", "every take fails", "use the address of the master, or Sentinels, which know it")
		}
	case name == "eval", name == "evalsha":
		n.add(Error, "scripts-refused", strings.ToUpper(name)+" fails: "+printable(text), "every decision is a script",
			"allow scripts: EVAL and EVALSHA, neither renamed nor behind a proxy that refuses them")
	default:
		n.add(Error, "command-failed", strings.ToUpper(name)+" fails: "+printable(text), "calls that need it fail",
			"see what the server says; all commands of the scripts are in Redis from 6.2 on and in Valkey")
	}
}

// keys reports that the keys of the namespace are forbidden, once for a node.
func (n *node) keys(line string) {
	if n.has("missing-keys") {
		return
	}
	pattern := "rl:" + n.exam.config.Namespace + ":*"
	n.add(Error, "missing-keys", "user "+n.user()+" may not use keys that match "+pattern, "every take fails",
		line+"~"+pattern+n.everywhere()+"; or examine the namespace that the user is for")
}

// everywhere is added to a line for one of several servers.
func (n *node) everywhere() string {
	if n.cluster || n.role == roleReplica {
		return " (on every node, replicas included)"
	}
	return ""
}

// scripts runs each script of the library with a deadline that has passed, so that it does nothing but read
// the clock. It returns false if one does not run.
func (n *node) scripts(ctx context.Context) bool {
	late := lateNumbers()
	scripts := lua.Load()
	for _, script := range scripts.All() {
		cmd, err := n.do(ctx, "eval", script.Source, 0, late)
		if err != nil {
			n.script(script.Name, err)
			return false
		}
		if text, _ := cmd.Text(); len(text) != lateReply || text[0] != 0 {
			n.add(Error, "scripts-refused", "script "+script.Name+" gives a reply that is none of its own", "calls that need it fail",
				"use Redis from 6.2 on or Valkey, without a proxy that changes replies")
			return false
		}
	}
	return true
}

// script reports a script that fails.
func (n *node) script(name string, err error) {
	text := err.Error()
	switch {
	case strings.Contains(text, "'struct'"):
		n.add(Error, "struct-missing", "scripts have no struct library: "+printable(text),
			"the state of buckets is packed with it, so that every call fails", "use Redis from 6.2 on or Valkey")
	case n.has("missing-right"), n.has("scripts-refused"):
		// What is missing has been named.
	case !isReply(err):
		n.silent(err)
	default:
		n.add(Error, "scripts-refused", "script "+name+" fails: "+printable(text), "calls that need it fail", "use Redis from 6.2 on or Valkey")
	}
}

// has says whether the node has a finding of a code.
func (n *node) has(code string) bool {
	n.exam.mu.Lock()
	defer n.exam.mu.Unlock()
	for _, f := range n.exam.found {
		if f.Node == n.name && f.Code == code {
			return true
		}
	}
	return false
}

// lateReply is the size of the reply of a script that came too late: 0, and the time.
const lateReply = 7

// lateNumbers is the first argument of a script whose caller waited until 1970, see clock.lua.
func lateNumbers() []byte {
	numbers := make([]byte, 0, 40)
	for _, x := range []float64{1, 0, 0, 0, 0} {
		numbers = binary.LittleEndian.AppendUint64(numbers, math.Float64bits(x))
	}
	return numbers
}
