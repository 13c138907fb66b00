package bucket

// rights are the commands that the calls of a [Redis] and its scripts need: the server checks those
// inside scripts as well.
var rights = []string{
	"evalsha", "eval", "time", "get", "set", "getrange", "setrange", "del", "unlink",
}

// clusterRights are what a client of a Redis Cluster needs besides.
var clusterRights = []string{"cluster|slots"}

// ACLRules returns the least rights in Redis with which everything in this package works, as rules for
// ACL SETUSER: the keys of a namespace, where empty means [DefaultNamespace], and single commands.
// cluster adds what a client of a Redis Cluster needs. Redis from 6.2 on and Valkey know all these
// rules. They are enough for the clients that this package makes; options of one's own can need more,
// such as select for a numbered database. The error is that of a namespace that [RedisConfig] refuses.
func ACLRules(namespace string, cluster bool) ([]string, error) {
	if namespace == "" {
		namespace = DefaultNamespace
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
