package redisstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redisplace"
)

// fields are those of an entry, as add.lua has them: each entry has all, in this order, which takes a Redis the least memory.
var fields = [...]string{"id", "source", "type", "subject", "time", "sequence", "data"}

// valuesOf returns the values of the fields, empty for those that an envelope has not.
func valuesOf(e *stream.Envelope) (values [len(fields)]string) {
	for name, value := range e.Attributes() {
		for i := range fields {
			if fields[i] == name {
				values[i] = value
			}
		}
	}
	values[len(fields)-1] = string(e.Data)
	return values
}

// errUnprintable says that an attribute is no text.
var errUnprintable = errors.New("an attribute is not UTF-8 without control characters")

// Decode reads an entry of the stream of a topic. The error is that of one which somebody else has written: it is no CloudEvent, or has attributes that databases and
// headers do not take.
func Decode(topic string, entry redis.XMessage) (stream.Envelope, error) {
	e := stream.Envelope{Topic: topic}
	errs := []error{}
	for name, field := range entry.Values {
		value, _ := field.(string)
		switch {
		case value == "":
		case name == "data":
			e.Data = json.RawMessage(value)
		case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
			errs = append(errs, errUnprintable)
		default:
			errs = append(errs, e.SetAttribute(name, value))
		}
	}
	if _, ok := entry.Values["specversion"]; !ok || e.ID == "" || !json.Valid(e.Data) {
		errs = append(errs, errors.New("it is no CloudEvent with data of JSON"))
	}
	if err := errors.Join(errs...); err != nil {
		return stream.Envelope{}, fmt.Errorf("redisstream: the entry %.40s of %.200s: %w", entry.ID, topic, err)
	}
	return e, nil
}

// ACLRules returns the least rights in Redis with which a [Sink] works, as rules for ACL SETUSER that are added to those of bucket.ACLRules. An empty
// namespace means main. The error is that of one that [New] refuses.
func ACLRules(namespace string) ([]string, error) {
	return rules(namespace, nil, "evalsha", "eval", "time", "xadd", "xtrim", "pexpire")
}

// ConsumerACLRules returns the rights of a user who only reads streams, alone or in a group of consumers, as rules for ACL SETUSER. It makes and
// acknowledges groups, and can neither add entries nor delete any.
func ConsumerACLRules(namespace string) ([]string, error) {
	return rules(namespace, []string{"resetkeys", "resetchannels", "-@all"},
		"ping", "hello", "xrange", "xrevrange", "xlen", "xread", "xreadgroup", "xack", "xclaim", "xautoclaim", "xpending",
		"xgroup|create", "xinfo|stream", "xinfo|groups", "xinfo|consumers")
}

func rules(namespace string, rules []string, commands ...string) ([]string, error) {
	place := redisplace.Place{Namespace: namespace}
	if err := place.CompleteNamespace("redisstream"); err != nil {
		return nil, err
	}
	return redisplace.Rules(append(rules, "~"+place.Key("stream:*")), commands...), nil
}
