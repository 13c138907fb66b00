package redisusage

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redisplace"
	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

//go:embed page.lua
var pageSource string

var pageScript = redis.NewScript(pageSource)

const (
	// chunkFields is how many fields one command writes, and pageFields about how many a page has.
	chunkFields = 256
	pageFields  = 512
	// maxField is how long a field is: a run, a limit with its level, a tenant, and what parts them. maxDigits is how long a number is.
	maxField  = 3*usage.MaxName + 64
	maxDigits = 19
)

// AppendRefusals adds commands to a pipeline that store what a run of an instance has refused, where a collector reads it. The run has a name
// of redisplace.NewRun. Numbers are absolute: a command may be sent again. An empty namespace means main.
func AppendRefusals(ctx context.Context, pipe redis.Pipeliner, namespace, run string, all []usage.Refused) {
	cfg := Config{Namespace: cmp.Or(namespace, "main")}
	fields := make(map[time.Time][]any)
	for i := range all {
		r := &all[i]
		fields[r.Hour] = append(fields[r.Hour], refusedField(run, r), r.N)
	}
	for hour, of := range fields {
		key := cfg.refused(hour)
		for len(of) > 0 {
			n := min(len(of), 2*chunkFields)
			pipe.HSet(ctx, key, of[:n]...)
			of = of[n:]
		}
		pipe.PExpire(ctx, key, usage.CountsLife+time.Hour)
	}
}

// refusedField is the field of a row.
func refusedField(run string, r *usage.Refused) string {
	return run + ":" + strconv.Itoa(len(r.Limit)) + ":" + r.Limit + r.Tenant
}

// readRefused reads a row. Anybody may have written it.
func readRefused(field, value string, hour time.Time) (r usage.Refused, ok bool) {
	run, rest, _ := strings.Cut(field, ":")
	digits, names, _ := strings.Cut(rest, ":")
	length, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || int(length) > len(names) || !redisplace.ValidRun(run) {
		return r, false
	}
	n, err := strconv.ParseUint(value, 10, 63)
	return usage.Refused{Run: run, Limit: names[:length], Tenant: names[length:], Hour: hour, N: int64(n)}, err == nil
}

// Refused implements [usage.Source].
func (r *Reader) Refused(ctx context.Context, hour time.Time, cursor string) (refused []usage.Refused, next string, err error) {
	hour = hour.UTC().Truncate(time.Hour)
	at := uint64(0)
	if cursor != "" {
		if at, err = strconv.ParseUint(cursor, 10, 64); err != nil {
			return nil, "", usage.ErrCursor
		}
	}
	ctx, cancel := redisplace.Bounded(ctx)
	defer cancel()
	page, err := pageScript.Run(ctx, r.cfg.Client, []string{r.cfg.refused(hour)}, at, pageFields, maxField, maxDigits).StringSlice()
	if err != nil || len(page) == 0 {
		return nil, "", fmt.Errorf("redisusage: refusals of %s: %w", hour.Format(time.RFC3339), err)
	}
	for i := 1; i+1 < len(page); i += 2 {
		if one, ok := readRefused(page[i], page[i+1], hour); ok {
			refused = append(refused, one)
		}
	}
	if page[0] != "0" {
		next = page[0]
	}
	return refused, next, nil
}
