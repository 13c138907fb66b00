package policies

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/cli"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/recorded"
	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
	"github.com/gqlgen-ratelimit/ratelimit/observe/report"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
	"github.com/gqlgen-ratelimit/ratelimit/tiers/simulate"
)

// Bounds of what is replayed.
const (
	// mostOperations is how many operations of samples are held at once. With more, fewer tenants are.
	mostOperations = 500_000
	// mostSince is for how long instances keep what they have recorded.
	mostSince    = time.Hour
	defaultSince = mostSince / 4
	// maxKey is how many bytes the file of a key has.
	maxKey = 4 << 10
)

// recordings are the flags that say what is replayed.
type recordings struct {
	file, key string
	samples   bool
	since     time.Duration
}

func (r *recordings) register(flags *flag.FlagSet) {
	flags.StringVar(&r.file, "records", "", "`file` of recorded costs, one JSON object a line")
	flags.BoolVar(&r.samples, "recorded", false, "replay what instances have recorded in Redis, and not a file")
	flags.DurationVar(&r.since, "since", defaultSince, "with -recorded, for how `long` back, up to an hour")
	flags.StringVar(&r.key, "report-key", "", "with -recorded, the `file` of the key of the instances, as in report.Config.Key")
}

func (r *recordings) given() bool { return r.file != "" || r.samples }

// check returns what is wrong with the flags by themselves.
func (r *recordings) check() error {
	switch {
	case r.file != "" && r.samples:
		return cli.Usagef("say one of -records and -recorded")
	case !r.samples && (r.key != "" || r.since != defaultSince):
		return cli.Usagef("-since and -report-key go with -recorded")
	case r.since < time.Second || r.since > mostSince:
		return cli.Usagef("-since %v: 1s to 1h fit", r.since)
	}
	return nil
}

// traffic is what is replayed.
type traffic struct {
	records iter.Seq2[simulate.Record, error]
	config  simulate.ReplayConfig
	known   tiers.Recorded
	units   map[bucket.Unit]bool
	// sample says whose operations they are, nil for a file.
	sample *sampleJSON
	// failed is the first error of the directory.
	failed error
}

// sampleJSON says how much of everything was recorded.
type sampleJSON struct {
	From       time.Time `json:"from,omitzero"`
	To         time.Time `json:"to,omitzero"`
	Share      float64   `json:"share"`
	Mixed      int64     `json:"mixed,omitempty"`
	LeftOut    int       `json:"leftOut,omitempty"`
	Unreadable int       `json:"unreadable,omitempty"`
}

// traffic reads what is replayed. The tenants of samples are looked up in the directory of the same Redis.
func (r *recordings) traffic(in *session.Flags, live *session.Live) (*traffic, error) {
	t := &traffic{config: simulate.ReplayConfig{Enforced: true}, units: make(map[bucket.Unit]bool)}
	if r.samples {
		t.config.Record = t.directory(in, live)
		return t, r.fromSamples(t, live)
	}
	t.records = fromFile(r.file)
	return t, t.learn()
}

// fromFile yields the records of a file.
func fromFile(path string) iter.Seq2[simulate.Record, error] {
	return func(yield func(simulate.Record, error) bool) {
		file, err := os.Open(path)
		if err != nil {
			yield(simulate.Record{}, fmt.Errorf("%s: cannot be read", path))
			return
		}
		defer func() { _ = file.Close() }()
		for record, err := range simulate.Read(file) {
			if err != nil {
				err = fmt.Errorf("%s: %w", path, err)
			}
			if !yield(record, err) {
				return
			}
		}
	}
}

// learn finds out what the records of a file say.
func (t *traffic) learn() error {
	t.known.Parts, t.known.Users = true, true
	named := make(map[string]bool)
	for record, err := range t.records {
		if err != nil {
			return err
		}
		t.known.Parts = t.known.Parts && (record.Parts != nil || len(record.Operations) < 2)
		for name := range record.Parameters {
			if !named[name] {
				named[name] = true
				t.known.Parameters = append(t.known.Parameters, name)
			}
		}
		t.count(&record)
	}
	return nil
}

func (t *traffic) count(record *simulate.Record) {
	for unit := range record.Units {
		t.units[unit] = true
	}
}

// fromSamples takes what instances have recorded.
func (r *recordings) fromSamples(t *traffic, live *session.Live) error {
	var key []byte
	if r.key != "" {
		read, err := cli.ReadFile(r.key, maxKey)
		if err != nil {
			return err
		}
		key = []byte(strings.TrimRight(string(read), "\r\n"))
	}
	reader, err := report.NewReader(report.Place{Client: live.Client, Namespace: live.Namespace})
	if err != nil {
		return cli.Usagef("%v", err)
	}
	var taken *recorded.Sample
	err = live.Call(func(ctx context.Context) (err error) {
		taken, err = recorded.Read(ctx, reader.Activities(ctx, r.since), key, mostOperations)
		return err
	})
	switch {
	case errors.Is(err, recorded.ErrKey):
		return cli.Usagef("the instances have a key: say -report-key FILE, of the one that they have")
	case err != nil:
		return err
	case taken.Samples == 0:
		return fmt.Errorf("no instance has recorded anything in the namespace %s for %v: name another with -namespace, or see docs/guide/rollout.md for how they do", live.Namespace, r.since)
	}
	t.known, t.config.Value = taken.Recorded(), taken.Value
	t.sample = &sampleJSON{From: taken.From, To: taken.To, Share: taken.Share(), LeftOut: taken.LeftOut, Unreadable: taken.Unreadable}
	for op := range taken.Operations() {
		if op.Mixed {
			t.sample.Mixed++
		}
		t.count(op.Record)
	}
	t.records = func(yield func(simulate.Record, error) bool) {
		for op := range taken.Operations() {
			record := *op.Record
			if record.At = op.At; !yield(record, nil) {
				return
			}
		}
	}
	return nil
}

// directory returns what looks up tenants, each once.
func (t *traffic) directory(in *session.Flags, live *session.Live) func(tenant string) *tiers.Record {
	known := make(map[string]*tiers.Record)
	return func(tenant string) *tiers.Record {
		record, asked := known[tenant]
		if asked || t.failed != nil {
			return record
		}
		record, err := in.Policy.Recorded(live, tenant)
		if err != nil {
			t.failed = fmt.Errorf("the record of %s in the directory: %w", session.TenantName(tenant), err)
		}
		known[tenant] = record
		return record
	}
}

// replay replays it under a policy.
func (t *traffic) replay(policy *tiers.Snapshot) (simulate.Report, error) {
	report, err := t.config.Run(t.records, policy)
	if err == nil {
		err = t.failed
	}
	return report, err
}

// writeRecorded says how much was recorded, nil for a file, and what of the policies records do not judge.
func writeRecorded(c cli.Console, s *sampleJSON, notJudged []string) {
	if s != nil {
		text := fmt.Sprintf("recorded: %s of tenants, from %s to %s", cli.Percent(s.Share), s.From.UTC().Format(time.RFC3339), s.To.UTC().Format(time.RFC3339))
		for _, part := range [...]struct {
			n    int64
			what string
		}{
			{s.Mixed, "operations are judged by the mean of several"},
			{int64(s.LeftOut), "tenants have asked for more than fits and are left out"},
			{int64(s.Unreadable), "entries cannot be read"},
		} {
			if part.n > 0 {
				text += fmt.Sprintf("; %d %s", part.n, part.what)
			}
		}
		fmt.Fprintln(c.Stdout, text)
	}
	if len(notJudged) > 0 {
		fmt.Fprintln(c.Stdout, "not judged:", cli.Plain(strings.Join(notJudged, ", ")))
	}
}
