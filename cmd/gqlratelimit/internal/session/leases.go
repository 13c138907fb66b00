package session

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/internal/policydiff"
)

// mostHolders is how many holders of a limit a table has.
const mostHolders = 20

// Leases is who leases parts of limits: of those of a tenant itself, and of the backstop.
type Leases struct{ Own, Backstop []bucket.LimitLeases }

// Leases returns who leases parts of the limits that the operations of the scope are judged by.
func (l *Live) Leases(h *Holding) (all Leases, err error) {
	if all.Own, err = l.leases(h.Scope.Tenant, h.Rules.Buckets); err != nil {
		return all, err
	}
	backstop := h.Rules.Backstop
	if h.Scope.Operation == "" {
		backstop = policydiff.Backstop(h.Policy.Snapshot, &h.Policy.Written)
	}
	all.Backstop, err = l.leases(everybody, backstop)
	return all, err
}

// everybody is the tenant to whom the backstop belongs.
const everybody = ""

// leases returns who leases parts of the limits of the tenant itself, which are those that instances lease, or of the backstop.
func (l *Live) leases(tenant string, buckets []bucket.Bucket) (leases []bucket.LimitLeases, err error) {
	for i := range buckets {
		if owner := &buckets[i].Owner; tenant != everybody && owner.Level != bucket.Tenant {
			continue
		}
		var some []bucket.LimitLeases
		err = l.Call(func(ctx context.Context) error {
			some, err = l.Store.Leases(ctx, tenant, buckets[i:i+1])
			return err
		})
		if err != nil {
			return nil, err
		}
		leases = append(leases, some...)
	}
	return leases, nil
}

// WriteLeases writes how limits are divided as a table, and nothing if none is.
func WriteLeases(c cli.Console, all *Leases) {
	if len(all.Own)+len(all.Backstop) == 0 {
		return
	}
	fmt.Fprintln(c.Stdout, "\nInstances lease parts of limits. What one holds, no other one has: an operation can be refused by one while others hold enough.")
	rows := [][]string{{"OWNER", "LIMIT", "HOLDER", "CAPACITY", "A SECOND", "LEFT", "LEASE"}}
	for i := range all.Own {
		rows = appendLeases(rows, OwnerName(all.Own[i].Free.Owner), &all.Own[i])
	}
	for i := range all.Backstop {
		owner := "backstop"
		if of := all.Backstop[i].Free.Owner; of.Level != bucket.Tenant {
			owner += " of " + OwnerName(of)
		}
		rows = appendLeases(rows, owner, &all.Backstop[i])
	}
	cli.WriteTable(c.Stdout, rows)
}

// appendLeases appends what the store has of a limit, and each of its holders.
func appendLeases(rows [][]string, owner string, l *bucket.LimitLeases) [][]string {
	limit, left := l.Free.Limit, ""
	if limit.Window.Kind == bucket.TokenBucket {
		left = strconv.FormatInt(max(0, limit.Capacity-l.Capacity), 10)
	}
	rows = append(rows, []string{owner, limit.Name, "(store)", left, "", Left(l.Free), ""})
	for j := range l.Parts[:min(len(l.Parts), mostHolders)] {
		p := &l.Parts[j]
		row := []string{owner, limit.Name, p.Holder, "", "", strconv.FormatInt(p.Level, 10), leaseText(p.EndsIn)}
		if limit.Window.Kind == bucket.TokenBucket {
			row[3], row[4] = strconv.FormatInt(p.Capacity, 10), strconv.FormatFloat(p.Refill, 'f', 1, 64)
		}
		rows = append(rows, row)
	}
	if more := l.Holders - mostHolders; more > 0 {
		rows = append(rows, []string{owner, limit.Name, fmt.Sprintf("and %d more", more), "", "", "", ""})
	}
	return rows
}

// leaseText says when a lease ends.
func leaseText(in time.Duration) string {
	if in <= 0 {
		return "ended " + (-in).Round(100*time.Millisecond).String() + " ago"
	}
	return "ends in " + in.Round(100*time.Millisecond).String()
}
