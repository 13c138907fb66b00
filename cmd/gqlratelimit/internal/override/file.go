package override

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
)

// Bounds of a file of records.
const (
	maxRecords  = 10_000
	maxFile     = 8 << 20
	maxMistakes = 100
)

// addressed is a record with its tenant.
type addressed struct {
	tenant string
	record bucket.Override
}

// batch is what a file comes to.
type batch struct {
	records []addressed
	// skipped names the records that are not set because their end has passed.
	skipped  []string
	mistakes []error
	// own is how many of the records have an end of their own.
	own int
}

// setFile sets the records of a file that have not expired, once all are checked.
func setFile(c cli.Console, in *setFlags) error {
	endless := in.For == 0 && in.Until == "" && !in.Forever
	if !endless {
		if err := in.Check(); err != nil {
			return err
		}
	}
	records, err := readRecords(in.file)
	if err != nil {
		return err
	}
	if without := slices.IndexFunc(records, func(r session.Record) bool { return r.Expires.IsZero() }); endless && without >= 0 {
		return cli.Usagef("%s: record %d, of %s, has no end: say for those without one -for DURATION or -until TIME, or -forever",
			in.file, without+1, session.TenantName(records[without].Tenant))
	}
	s, err := in.OpenPolicy(c)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := in.Complete(c); err != nil {
		return err
	}
	now, err := s.Now()
	if err != nil {
		return err
	}
	var end time.Time
	if !endless {
		if end, err = in.End(now); err != nil {
			return err
		}
	}
	found := in.examine(c, s, records, now, end)
	if len(found.mistakes) > 0 {
		return fmt.Errorf("%w\nnothing was set", errors.Join(found.mistakes...))
	}
	if found.own > 0 && !endless {
		fmt.Fprintf(c.Stderr, "note: %s the end of the file: -for, -until and -forever are for records without one\n", counted(found.own, "record keeps", "records keep"))
	}
	return putAll(c, s, in, &found)
}

// counted says how many there are.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// examine completes and checks the records of a file. Those without an end get one, zero for never.
func (in *setFlags) examine(c cli.Console, s *session.Session, records []session.Record, now, end time.Time) batch {
	var found batch
	for i := range records {
		r := &records[i]
		if r.Expires.IsZero() {
			r.Expires = end
		} else {
			found.own++
		}
		r.Reason, r.Actor = cmp.Or(r.Reason, in.Reason), cmp.Or(r.Actor, in.Actor)
		record, err := checkRecord(c, s, r)
		switch {
		case err != nil && len(found.mistakes) < maxMistakes:
			found.mistakes = append(found.mistakes, fmt.Errorf("%s: record %d, of %s: %w", in.file, i+1, session.TenantName(r.Tenant), err))
		case err != nil:
		case !r.Expires.IsZero() && !r.Expires.After(now):
			found.own--
			found.skipped = append(found.skipped, fmt.Sprintf("%s: record %d, of %s, is not set: it has expired at %s",
				in.file, i+1, session.TenantName(r.Tenant), session.Ends(&record)))
		default:
			found.records = append(found.records, addressed{r.Tenant, record})
		}
	}
	return found
}

// checkRecord returns the record for the store, if it fits what holds for its owner.
func checkRecord(c cli.Console, s *session.Session, r *session.Record) (bucket.Override, error) {
	scope := session.NewScope(r.Tenant, r.Team, r.User, r.Operation, r.Part)
	owner, err := scope.Owner()
	if err != nil {
		return bucket.Override{}, err
	}
	record, err := r.Override(owner)
	if err != nil {
		return record, err
	}
	h, err := s.Hold(scope)
	if err != nil {
		return record, err
	}
	return record, check(c, h, &record)
}

// putAll sets records one after the other, and fails if some were left out. Setting a record twice is the same as once, so that a file is
// set anew after a failure.
func putAll(c cli.Console, s *session.Session, in *setFlags, found *batch) error {
	all, replaced := found.records, 0
	for i, a := range all {
		var was *bucket.Override
		err := s.Call(func(ctx context.Context) (err error) {
			was, err = s.Store.SetOverride(ctx, a.tenant, a.record)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: the record of %s: %w\n%d of %d are set; the same call sets all of them", in.file, session.TenantName(a.tenant), err, i, len(all))
		}
		if was != nil {
			replaced++
		}
	}
	left := ""
	if n := len(found.skipped); n > 0 {
		fmt.Fprintln(c.Stderr, strings.Join(found.skipped, "\n"))
		left = ", and " + counted(n, "has expired and is not", "have expired and are not")
	}
	fmt.Fprintf(c.Stdout, "%s set, of which %d replaced another%s.\n", counted(len(all), "override record is", "override records are"), replaced, left)
	if left != "" {
		return cli.ErrFound
	}
	return nil
}

// readRecords reads a file of records.
func readRecords(path string) ([]session.Record, error) {
	data, err := cli.ReadFile(path, maxFile)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var in listedJSON
	if err := decoder.Decode(&in); err != nil {
		at := decoder.InputOffset()
		return nil, fmt.Errorf("%s:%d: no records: %w", path, 1+bytes.Count(data[:at], []byte("\n")), err)
	}
	switch _, err := decoder.Token(); {
	case !errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%s: more than one object", path)
	case in.Version != cli.FormatVersion:
		return nil, fmt.Errorf("%s: version %d; %d is known", path, in.Version, cli.FormatVersion)
	case len(in.Records) == 0 || len(in.Records) > maxRecords:
		return nil, fmt.Errorf("%s: %d records; 1 to %d fit", path, len(in.Records), maxRecords)
	}
	return in.Records, nil
}
