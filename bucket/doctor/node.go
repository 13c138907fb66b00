package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// role is what a node is in its cluster or group.
type role int

const (
	roleUnknown role = iota
	roleMaster
	roleReplica
)

// node is one server that is examined. It is for one goroutine.
type node struct {
	exam   *examination
	client *redis.Client
	role   role
	// cluster says that the client takes the server for a node of a cluster.
	cluster bool
	// peer is nil where the address of the client is that of the node.
	peer *peer
	name string
	info map[string]string
}

func (e *examination) node(client *redis.Client, role role) *node {
	return &node{exam: e, client: client, role: role, name: client.Options().Addr}
}

func (n *node) add(severity Severity, code, seen, why, remedy string) {
	n.exam.add(Finding{Severity: severity, Code: code, Node: n.name, Seen: seen, Why: why, Remedy: remedy})
}

// do sends one command, once.
func (n *node) do(ctx context.Context, args ...any) (*redis.Cmd, error) {
	ctx, cancel := context.WithTimeout(ctx, n.exam.config.callTimeout())
	defer cancel()
	cmd := redis.NewCmd(ctx, args...)
	err := n.client.Process(ctx, cmd)
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return cmd, err
}

// examine looks at everything, and ends early where nothing more can be seen.
func (n *node) examine(ctx context.Context) {
	// Any reply will do: what is forbidden is not silent.
	_, err := n.do(ctx, "time")
	n.locate()
	n.encryption()
	if n.silent(err) || !n.readInfo(ctx) {
		return
	}
	n.version()
	n.memory()
	n.replication()
	n.persistence(ctx)
	n.scriptTime(ctx)
	if n.cluster {
		n.coverage(ctx)
	}
	n.rights(ctx)
	if n.scripts(ctx) {
		n.latency(ctx)
	}
}

// locate names the node by where it is, if that is not what the client calls it.
func (n *node) locate() {
	if n.peer == nil {
		return
	}
	if address := n.peer.address.Load(); address != nil && !strings.Contains(n.name, ":") && n.client.Options().Network != "unix" {
		n.name = *address
	}
}

// encryption looks for a connection to another machine that everybody between can read.
func (n *node) encryption() {
	o := n.client.Options()
	if o.TLSConfig != nil || o.Network == "unix" || n.peer != nil && n.peer.encrypted.Load() || local(n.name) {
		return
	}
	n.add(Warning, "tls-off", "the connection is not encrypted",
		"whoever can read the network between reads the password of Redis, and who changes it changes budgets",
		"use a rediss:// address or redisclient.Config.TLS; ignore this where the network is encrypted or private")
}

// local says whether an address is on this machine. Names are not looked up.
func local(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		// The word that go-redis uses for a master that no Sentinel has named yet.
		return true
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// silent reports a node with which nothing more can be done.
func (n *node) silent(err error) bool {
	var network *net.OpError
	switch {
	case err == nil:
		return false
	case n.client.Options().DB != 0 && strings.Contains(err.Error(), "SELECT is not allowed in cluster mode"):
		n.add(Error, "database-in-cluster", fmt.Sprintf("database %d in a cluster", n.client.Options().DB),
			"a cluster has database 0 only, so that every call fails", "leave the database away, and use a client for clusters")
	case redis.IsAuthError(err), redis.HasErrorPrefix(err, "ERR AUTH"), redis.HasErrorPrefix(err, "ERR invalid password"):
		n.add(Error, "not-authenticated", "the server refuses the credentials of user "+n.user(),
			"every call fails", "check user and password; in a cluster and behind Sentinels every server needs the user")
	case isReply(err):
		return false
	case errors.As(err, &network) && network.Op == "dial", strings.Contains(err.Error(), "sentinel"), strings.HasPrefix(err.Error(), "tls:"), strings.HasPrefix(err.Error(), "x509:"):
		n.add(Error, "unreachable", "no connection: "+printable(err.Error()),
			"the fail mode of each limit decides about every operation", "check address, network, TLS and that the server runs")
	default:
		n.add(Error, "unanswered", fmt.Sprintf("no answer within %v: %s", n.exam.config.callTimeout(), printable(err.Error())),
			"the fail mode of each limit decides about every operation", "see whether the server is frozen, overloaded or reached through a network that drops packets")
	}
	return true
}

// isReply says whether an error is the answer of a server.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// forbidden says whether a server refuses a command to everybody or to this user.
func forbidden(err error) bool {
	return err != nil && isReply(err)
}

// user is the name of the user, for a line of ACL SETUSER.
func (n *node) user() string {
	if name := n.client.Options().Username; name != "" {
		return printable(name)
	}
	return "default"
}

// maxText is how much of a text of a server is shown.
const maxText = 200

// printable makes a text of a server safe to print.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}
