package session

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/internal/policydiff"
)

// LimitText says a limit in words.
func LimitText(l *bucket.Limit) string { return policydiff.Limit(l) }

// Left says in words what is left of a limit.
func Left(s bucket.LimitState) string {
	text := strconv.FormatInt(s.Remaining, 10)
	if s.Overdraft > 0 {
		text += fmt.Sprintf(", %d overdrawn", s.Overdraft)
	}
	return text
}

// FullAgain says in words when a limit is full again.
func FullAgain(s bucket.LimitState) string {
	switch {
	case s.ResetAfter <= 0:
		return "full"
	case s.ResetAfter < time.Minute:
		return "in " + s.ResetAfter.Round(100*time.Millisecond).String()
	default:
		return "in " + s.ResetAfter.Round(time.Second).String()
	}
}

// Peek returns what is left of budgets, in as many calls as their number needs.
func (l *Live) Peek(tenant string, buckets []bucket.Bucket) ([]bucket.LimitState, error) {
	var all []bucket.LimitState
	for len(buckets) > 0 {
		n, limits := 0, 0
		for n < len(buckets) && (n == 0 || limits+len(buckets[n].Limits.All()) <= bucket.MaxLimits) {
			limits += len(buckets[n].Limits.All())
			n++
		}
		var states []bucket.LimitState
		err := l.Call(func(ctx context.Context) (err error) {
			states, err = l.Store.Peek(ctx, tenant, buckets[:n])
			return err
		})
		if err != nil {
			return nil, err
		}
		all, buckets = append(all, states...), buckets[n:]
	}
	return all, nil
}

// WriteStates writes what is left of limits as a table.
func WriteStates(c cli.Console, states []bucket.LimitState) {
	rows := [][]string{{"OWNER", "LIMIT", "MODE", "LEFT", "OF", "FULL AGAIN", "BECAUSE OF"}}
	for _, s := range states {
		because := ""
		for _, record := range s.Limit.Overrides() {
			because = fmt.Sprintf("record of %s: %s", record.Actor, record.Reason)
		}
		rows = append(rows, []string{OwnerName(s.Owner), s.Limit.Name, s.Limit.Mode.String(), Left(s), LimitText(s.Limit), FullAgain(s), because})
	}
	cli.WriteTable(c.Stdout, trimColumn(rows))
}

// trimColumn leaves the last column away if nothing stands in it.
func trimColumn(rows [][]string) [][]string {
	last := len(rows[0]) - 1
	for _, row := range rows[1:] {
		if row[last] != "" {
			return rows
		}
	}
	for i := range rows {
		rows[i] = rows[i][:last]
	}
	return rows
}

// WriteChange writes limits as they were and as they are.
func WriteChange(c cli.Console, before, after []bucket.LimitState) {
	rows := [][]string{{"OWNER", "LIMIT", "BEFORE", "", "AFTER"}}
	for _, now := range after {
		was := "(no limit)"
		for _, s := range before {
			if s.Owner == now.Owner && s.Limit.Name == now.Limit.Name && s.Limit.Unit == now.Limit.Unit {
				was = summary(s)
			}
		}
		rows = append(rows, []string{OwnerName(now.Owner), now.Limit.Name, was, "→", summary(now)})
	}
	for _, s := range before {
		if !has(after, s) {
			rows = append(rows, []string{OwnerName(s.Owner), s.Limit.Name, summary(s), "→", "not judged"})
		}
	}
	cli.WriteTable(c.Stdout, rows)
}

func has(states []bucket.LimitState, s bucket.LimitState) bool {
	for _, other := range states {
		if other.Owner == s.Owner && other.Limit.Name == s.Limit.Name && other.Limit.Unit == s.Limit.Unit {
			return true
		}
	}
	return false
}

func summary(s bucket.LimitState) string {
	text := Left(s) + " left of " + LimitText(s.Limit)
	if s.Limit.Mode != bucket.Enforce {
		text += ", " + s.Limit.Mode.String()
	}
	return text
}

// WriteHeading writes what the policy says of a tenant as a whole.
func WriteHeading(c cli.Console, h *Holding) {
	from := h.Rules.Provenance(h.Subject)
	fmt.Fprintf(c.Stdout, "%s: tier %s by %s, mode %s by %s; policy: %s\n",
		h.Scope.String(), h.Rules.Tier, Place(from.Tier), h.Rules.Mode, Place(from.Mode), h.Policy.From)
	if h.Rules.Store != "" {
		fmt.Fprintf(c.Stdout, "Its budgets are in the store %s: -redis has to be that one.\n", h.Rules.Store)
	}
	switch {
	case h.Rules.Blocked:
		fmt.Fprintf(c.Stdout, "The policy blocks it: %s.\n", strings.Join(from.Rule, ", "))
	case h.Rules.Unlimited:
		fmt.Fprintln(c.Stdout, "It is unlimited.")
	}
}

// Place returns a place of a policy for people: (default) is no path.
func Place(place string) string { return cli.Plain(strings.Trim(place, "()")) }
