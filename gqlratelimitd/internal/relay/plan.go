package relay

import (
	"strconv"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/store"
)

// A record that comes from here says so, and from which change, behind its actor: "ada (gqlratelimitd #17)". So whoever reads it
// knows, and so a record that somebody else has set is told from one that a Redis had in the past.
const (
	markBegins = " (gqlratelimitd #"
	markEnds   = ")"
	// maxActor is how many bytes the actor of a record has.
	maxActor = 128
)

// marked returns an actor with the change that a record comes from, in at most so many bytes.
func marked(actor string, revision uint64, most int) string {
	mark := markBegins + strconv.FormatUint(revision, 10) + markEnds
	return cut(actor, most-len(mark)) + mark
}

// cut returns at most so many bytes of a text.
func cut(text string, most int) string { return strings.ToValidUTF8(text[:min(len(text), most)], "") }

// markOf returns the change that a record comes from. A record that has none comes from somewhere else.
func markOf(actor string) (revision uint64, ours bool) {
	at := strings.LastIndex(actor, markBegins)
	if at < 0 || !strings.HasSuffix(actor, markEnds) {
		return 0, false
	}
	revision, err := strconv.ParseUint(actor[at+len(markBegins):len(actor)-len(markEnds)], 10, 64)
	return revision, err == nil
}

// recordOf returns the record of an intent.
func recordOf(i *store.Intent) bucket.Override {
	record := i.Override.Override
	record.Actor, record.SetAt = marked(record.Actor, i.Revision, maxActor), time.Time{}
	return record
}

// keptAfterEnd is for how long an override is tried although it has ended by the clock of this daemon: that of Redis decides.
const keptAfterEnd = 24 * time.Hour

// plan is what has to be done about the override records of a tenant.
type plan struct {
	// set are the intents that Redis has to be given, and remove those whose records have to go.
	set, remove []*store.Intent
	// foreign are the records that nobody has set here and that stay, and replaced those that an intent replaces.
	foreign, replaced []bucket.Override
	// settled are intents of which there is nothing to do.
	settled []*store.Intent
}

// planOf compares what Redis has of a tenant with what the database has.
//
// The intent holds. A record that comes from here is replaced or removed if it is not that of the intent. A record that
// comes from somewhere else stays: only an override that somebody sets here afterwards replaces it. So does one that says it
// comes from a later change than the database has: that was restored from a backup.
func planOf(now time.Time, records []bucket.Override, intents []store.Intent) (p plan) {
	type key struct {
		owner bucket.Owner
		limit string
	}
	there := make(map[key]*bucket.Override, len(records))
	for i := range records {
		there[key{records[i].Owner, records[i].Limit}] = &records[i]
	}
	for n := range intents {
		i := &intents[n]
		at := key{i.Owner, i.Limit}
		record := there[at]
		delete(there, at)
		from, ours := uint64(0), false
		if record != nil {
			from, ours = markOf(record.Actor)
		}
		fresh, wanted := i.Applied < i.Revision, i.Holds(now.Add(-keptAfterEnd))
		switch {
		case record != nil && (ours && from > i.Revision || !ours && (!fresh || !wanted)):
			p.foreign = append(p.foreign, *record)
			p.settled = append(p.settled, i)
		case wanted && (record == nil || !same(record, i)):
			p.set = append(p.set, i)
			if record != nil && !ours {
				p.replaced = append(p.replaced, *record)
			}
		case !wanted && record != nil:
			p.remove = append(p.remove, i)
		default:
			p.settled = append(p.settled, i)
		}
	}
	for n := range records {
		if record := &records[n]; there[key{record.Owner, record.Limit}] != nil {
			p.foreign = append(p.foreign, *record)
		}
	}
	return p
}

// same reports whether a record is that of an intent.
func same(record *bucket.Override, i *store.Intent) bool {
	is, wanted := *record, recordOf(i)
	if (is.Mode == nil) != (wanted.Mode == nil) || is.Mode != nil && *is.Mode != *wanted.Mode {
		return false
	}
	if is.Expires.UnixMilli() != wanted.Expires.UnixMilli() {
		return false
	}
	is.Mode, is.Expires, is.SetAt = wanted.Mode, wanted.Expires, wanted.SetAt
	return is == wanted
}
