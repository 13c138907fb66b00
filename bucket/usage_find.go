package bucket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/internal/state"
)

// UsageFound is an hour of a tenant of which a store has a count.
type UsageFound struct {
	Tenant string
	// Hour is when it began, in UTC.
	Hour  time.Time
	Grade UsageGrade
}

// findCount is about how many keys one call looks at.
const findCount = 1000

// FindUsage returns hours of tenants of which a Redis, or a node of a Redis Cluster, has counts in a namespace, where empty means main. The cursor
// is zero first, then what was returned before, and zero at the end. It looks at all keys of the server, one page after the other, so that it takes a
// while with many, and needs the right +scan beside those of [ACLRules]. What is there all the time is found, some of it more than once perhaps. A tenant whose
// name has more than 256 bytes is not: its key does not tell it, and the count has no more of it.
func FindUsage(ctx context.Context, node *redis.Client, namespace string, cursor uint64) (found []UsageFound, next uint64, err error) {
	namespace = cmp.Or(namespace, defaultNamespace)
	if err := checkNamespace(namespace); err != nil {
		return nil, 0, err
	}
	keys, next, err := node.Scan(ctx, cursor, "rl:"+namespace+":{*}:[nl]2:*", findCount).Result()
	if err != nil {
		return nil, 0, err
	}
	var unnamed []UsageFound
	var names []*redis.StringCmd
	pipe := node.Pipeline()
	for _, key := range keys {
		one, name, ok := parseUsageKey(namespace, key)
		switch {
		case !ok:
		case literal(name):
			one.Tenant = name
			found = append(found, one)
		default:
			one.Tenant = name
			unnamed = append(unnamed, one)
			names = append(names, pipe.GetRange(ctx, key, state.CountNames, state.CountNames+state.MaxFirstName-1))
		}
	}
	if len(names) == 0 {
		return found, next, nil
	}
	// Each reply has its own error.
	_, _ = pipe.Exec(ctx)
	for i, cmd := range names {
		text, err := cmd.Result()
		var said redis.Error
		if err != nil && !errors.As(err, &said) {
			return nil, 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		// What is no string, or has moved to another node, is none here. No name is the empty one.
		name, _ := state.FirstTenant(text)
		if err != nil || segment(name) != unnamed[i].Tenant {
			continue
		}
		unnamed[i].Tenant = name
		found = append(found, unnamed[i])
	}
	return found, next, nil
}

// parseUsageKey reads the key of the first count of an hour. It returns the segment that stands for the tenant.
func parseUsageKey(namespace, key string) (of UsageFound, tenant string, ok bool) {
	rest, ok := strings.CutPrefix(key, "rl:"+namespace+":{")
	if !ok {
		return of, "", false
	}
	tenant, rest, ok = strings.Cut(rest, "}")
	if !ok || !literal(strings.TrimPrefix(tenant, "~")) {
		return of, "", false
	}
	for grade, kind := range [...]keyKind{UsageExact: usageKey, UsageLocal: localUsageKey} {
		hour, is := strings.CutPrefix(rest, infixes[kind])
		const decimal, bits = 10, 32
		n, err := strconv.ParseUint(hour, decimal, bits)
		if is && err == nil {
			return UsageFound{Hour: time.UnixMilli(int64(n) * state.CountHour).UTC(), Grade: UsageGrade(grade)}, tenant, true
		}
	}
	return of, "", false
}
