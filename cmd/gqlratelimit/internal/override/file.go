package override

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

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

// setFile sets all records of a file, once all are checked.
func setFile(c cli.Console, in *setFlags) error {
	if err := in.Check(); err != nil {
		return err
	}
	records, err := readRecords(in.file)
	if err != nil {
		return err
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
	end, err := in.End(now)
	if err != nil {
		return err
	}
	var all []addressed
	var mistakes []error
	for i := range records {
		r := &records[i]
		if r.Expires.IsZero() {
			r.Expires = end
		}
		if r.Reason == "" {
			r.Reason = in.Reason
		}
		if r.Actor == "" {
			r.Actor = in.Actor
		}
		record, err := checkRecord(c, s, r)
		if err == nil && !r.Expires.IsZero() && !r.Expires.After(now) {
			err = fmt.Errorf("it has expired at %s", session.Ends(&record))
		}
		switch {
		case err == nil:
			all = append(all, addressed{r.Tenant, record})
		case len(mistakes) < maxMistakes:
			mistakes = append(mistakes, fmt.Errorf("%s: record %d, of %s: %w", in.file, i+1, session.TenantName(r.Tenant), err))
		}
	}
	if len(mistakes) > 0 {
		return fmt.Errorf("%w\nnothing was set", errors.Join(mistakes...))
	}
	return putAll(c, s, in, all)
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

// putAll sets records one after the other. Setting a record twice is the same as once, so that a file is set anew after a failure.
func putAll(c cli.Console, s *session.Session, in *setFlags, all []addressed) error {
	replaced := 0
	for i, a := range all {
		var was *bucket.Override
		err := s.Call(func(ctx context.Context) (err error) {
			was, err = s.Store.SetOverride(ctx, a.tenant, a.record)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: record %d, of %s: %w\n%d of %d are set; the same call sets all of them", in.file, i+1, session.TenantName(a.tenant), err, i, len(all))
		}
		if was != nil {
			replaced++
		}
	}
	if in.JSON {
		return c.WriteJSON(struct {
			Version  int `json:"version"`
			Set      int `json:"set"`
			Replaced int `json:"replaced"`
		}{session.FormatVersion, len(all), replaced})
	}
	fmt.Fprintf(c.Stdout, "%d override records are set, of which %d replaced another.\n", len(all), replaced)
	return nil
}

// readRecords reads a file of records.
func readRecords(path string) ([]session.Record, error) {
	data, err := session.ReadFile(path, maxFile)
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
	case in.Version != session.FormatVersion:
		return nil, fmt.Errorf("%s: version %d; %d is known", path, in.Version, session.FormatVersion)
	case len(in.Records) == 0 || len(in.Records) > maxRecords:
		return nil, fmt.Errorf("%s: %d records; 1 to %d fit", path, len(in.Records), maxRecords)
	}
	return in.Records, nil
}
