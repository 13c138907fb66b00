package doctor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/doctor"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

// limiter is the user of Redis with few rights.
const limiter = "limiter"

// allow gives the user these rights and no others.
func allow(t *testing.T, admin *redis.Client, rules ...string) {
	t.Helper()
	args := []any{"acl", "setuser", limiter, "reset", "on", ">pw"}
	for _, rule := range rules {
		args = append(args, rule)
	}
	require.NoError(t, admin.Do(context.Background(), args...).Err())
}

func rules(t *testing.T, cluster bool) []string {
	t.Helper()
	rules, err := bucket.ACLRules("", cluster)
	require.NoError(t, err)
	return rules
}

// looking are the rights that the doctor needs besides those of the limiter.
var looking = []string{"+info", "+config|get", "+cluster|info"}

func TestEachMissingRightIsNamedWithTheLineThatAddsIt(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t, healthy()...).Addr
	client := open(t, redisclient.Config{Addresses: []string{addr}, Username: limiter, Password: "pw"})
	all := rules(t, false)
	for _, rule := range all {
		command, isCommand := strings.CutPrefix(rule, "+")
		if !isCommand {
			continue
		}
		some := slices.DeleteFunc(slices.Clone(all), func(other string) bool { return other == rule })
		allow(t, redistest.Plain(t, addr), append(some, looking...)...)
		f := only(t, client, doctor.Error, "missing-right", strings.ToUpper(command))
		require.Contains(t, f.Remedy, "ACL SETUSER limiter +"+command+";")
		require.Equal(t, addr, f.Node)
	}
	allow(t, redistest.Plain(t, addr), append(all, looking...)...)
	require.Equal(t, []string{"no-replica"}, codes(examine(t, client)))
}

func TestKeysThatTheUserMayNotUseAreFound(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t, healthy()...).Addr
	allow(t, redistest.Plain(t, addr), append(rules(t, false), looking...)...)
	client := open(t, redisclient.Config{Addresses: []string{addr}, Username: limiter, Password: "pw"})
	found, err := doctor.Examine(context.Background(), doctor.Config{Client: client, Namespace: "shop", Timeout: patience, Patience: patience})
	require.NoError(t, err)
	require.Equal(t, []string{"no-replica", "missing-keys"}, codes(found))
	require.Contains(t, found[1].Remedy, "ACL SETUSER limiter ~rl:shop:*")
}

func TestWhereInfoAndConfigAreForbiddenTheDoctorSaysWhatToCheckByHand(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t, healthy()...).Addr
	allow(t, redistest.Plain(t, addr), rules(t, false)...)
	client := open(t, redisclient.Config{Addresses: []string{addr}, Username: limiter, Password: "pw"})
	f := only(t, client, doctor.Note, "could-not-look", "INFO is refused")
	require.Contains(t, f.Remedy, "maxmemory_policy")
}

func TestWhereConfigIsUnknownEvictionIsStillFound(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t, "--maxmemory", memory, "--maxmemory-policy", "volatile-ttl", "--rename-command", "CONFIG", "").Addr
	found := examine(t, at(t, addr))
	require.Equal(t, []string{"evicting-policy", "no-replica", "could-not-look"}, codes(found))
	require.Contains(t, found[2].Why, "snapshots")
}

func TestInAClusterWithFewRightsOnlyWhatCouldNotBeSeenIsFound(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartReplicatedCluster(t, never)
	for _, addr := range cluster.Addrs {
		set(t, addr, "maxmemory", memory)
		allow(t, redistest.Plain(t, addr), rules(t, true)...)
	}
	client := open(t, redisclient.Config{Addresses: cluster.Addrs, Username: limiter, Password: "pw"})
	found := examine(t, client)
	// INFO, CLUSTER INFO and CONFIG of each node.
	require.Len(t, found, 3*len(cluster.Addrs))
	for _, f := range found {
		require.Equal(t, "could-not-look", f.Code)
		require.Equal(t, doctor.Note, f.Severity)
	}
}

func TestARightThatOnlyAReplicaLacksIsFoundBeforeItIsPromoted(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartReplicatedCluster(t, never)
	for _, addr := range cluster.Addrs {
		set(t, addr, "maxmemory", memory, "appendonly", "yes")
		allow(t, redistest.Plain(t, addr), append(rules(t, true), looking...)...)
	}
	replica := cluster.Replicas[1].Addr
	allow(t, redistest.Plain(t, replica), append(append(rules(t, true), looking...), "-setrange")...)
	client := open(t, redisclient.Config{Addresses: cluster.Addrs, Username: limiter, Password: "pw"})
	f := only(t, client, doctor.Error, "missing-right", "SETRANGE")
	require.Equal(t, replica, f.Node)
	require.Contains(t, f.Remedy, "on every node")
}

func TestAClientThatMayNotReadTheMapOfSlotsIsFound(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartReplicatedCluster(t, never)
	for _, addr := range cluster.Addrs {
		set(t, addr, "maxmemory", memory, "appendonly", "yes")
		allow(t, redistest.Plain(t, addr), append(rules(t, false), looking...)...)
	}
	client := open(t, redisclient.Config{Addresses: cluster.Addrs, Username: limiter, Password: "pw"})
	found := examine(t, client)
	require.Len(t, found, len(cluster.Addrs))
	for _, f := range found {
		require.Equal(t, "missing-right", f.Code)
		require.Contains(t, f.Remedy, "+cluster|slots")
	}
}

func TestCredentialsThatAreRefusedAreFound(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t, healthy()...).Addr
	set(t, addr, "requirepass", "pw")
	for _, config := range []redisclient.Config{
		{Addresses: []string{addr}},
		{Addresses: []string{addr}, Password: "wrong"},
		{Addresses: []string{addr}, Username: "nobody", Password: "pw", Protocol: 2},
	} {
		found := examine(t, open(t, config))
		require.Equal(t, []string{"not-authenticated"}, codes(found), found)
	}
}

func TestAServerThatRefusesScriptsIsFound(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"EVAL", "EVALSHA"} {
		addr := redistest.Start(t, healthy("--rename-command", command, "")...).Addr
		only(t, at(t, addr), doctor.Error, "scripts-refused", command+" fails: ERR unknown command")
	}
}

func TestAServerWithoutTheStructLibraryIsFound(t *testing.T) {
	t.Parallel()
	refuses := func(command string) string {
		if strings.HasPrefix(command, "eval ") && strings.Contains(command, "struct.unpack") {
			return "-ERR user_script:1: Script attempted to access nonexistent global variable 'struct'\r\n"
		}
		return ""
	}
	only(t, at(t, pretend(t, healthyInfo("7.0.0"), refuses)), doctor.Error, "struct-missing", "struct")
}

func TestRepliesThatAreNoneOfTheScriptsAreFound(t *testing.T) {
	t.Parallel()
	changes := func(command string) string {
		if strings.HasPrefix(command, "eval ") && strings.Contains(command, "struct.unpack") {
			return "$2\r\nOK\r\n"
		}
		return ""
	}
	only(t, at(t, pretend(t, healthyInfo("7.0.0"), changes)), doctor.Error, "scripts-refused", "script take gives a reply")
}

func TestTextsOfServersCannotSteerATerminal(t *testing.T) {
	t.Parallel()
	steers := func(command string) string {
		if strings.HasPrefix(command, "eval ") {
			return "-ERR \x1b[2J\x07" + strings.Repeat("long", 1000) + "\r\n"
		}
		return ""
	}
	f := only(t, at(t, pretend(t, healthyInfo("7.0.0"), steers)), doctor.Error, "scripts-refused", "ERR")
	require.NotContains(t, f.Seen, "\x1b")
	require.NotContains(t, f.Seen, "\x07")
	require.Less(t, len(f.Seen), 300)
}

func TestRightsThatLaterServersRefuseInOtherWordsAreNamed(t *testing.T) {
	t.Parallel()
	for text, code := range map[string]string{
		"ERR ACL failure in script: User limiter has no permissions to run the 'get' command": "missing-right",
		"ERR ACL failure in script: No permissions to access a key":                           "missing-keys",
		"ERR something else": "command-failed",
	} {
		refuses := func(command string) string {
			if strings.HasPrefix(command, "eval ") && strings.Contains(command, "'SET', KEYS[1], 'doctor'") {
				return fmt.Sprintf("*2\r\n$3\r\nget\r\n$%d\r\n%s\r\n", len(text), text)
			}
			return ""
		}
		only(t, at(t, pretend(t, healthyInfo("7.2.4"), refuses)), doctor.Error, code, "")
	}
}
