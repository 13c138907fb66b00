package simulate

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// Record is the price of one operation that ran. As JSON, one a line, records are what [Run]
// replays.
type Record struct {
	// At is when the operation ran. It is required, and after 1970.
	At time.Time `json:"at"`
	// Tenant is who paid. It is required.
	Tenant string `json:"tenant"`
	// Team and User are those of the subject. They are empty if there were none, or if the budgets of
	// teams and users do not matter.
	Team string `json:"team,omitempty"`
	User string `json:"user,omitempty"`
	// Tier is the tier that the subject carried. It is empty if it carried none.
	Tier string `json:"tier,omitempty"`
	// Operations are the coordinates of the root fields that it selected, such as Mutation.createOrder:
	// the RootFields of its decision. It is empty if operation rules do not matter. A field that stands in it several
	// times was called so often, for limits in requests of operation rules. What limits with [tiers.Limit.By] and
	// computed units would do is not known from it, and left out.
	Operations []string `json:"operations,omitempty"`
	// Parts are how often each of the Operations, which stand there once then, was called, in their order, as [event.Detail] has them.
	// Without them each field was called once.
	//
	// [event.Detail]: https://pkg.go.dev/github.com/gqlgen-ratelimit/ratelimit/event#Detail
	Parts []Part `json:"parts,omitempty"`
	// Parameters are the values that it carried for custom limits, by [tiers.Parameter.String]. With [ReplayConfig.Value] they are what stands
	// for them.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Document is the id of the trusted document that it came in, empty if there was none, or if rules for documents do not matter.
	Document string `json:"document,omitempty"`
	// Units are what else it asked for. Requests are 1 if they do not stand among them.
	Units map[bucket.Unit]int64 `json:"units,omitempty"`
	// Points is the price. It is not negative.
	Points int64 `json:"points"`
}

// Part are the calls of one root field.
type Part struct {
	// Calls is how many there are, 0 for a field that was left out.
	Calls int64 `json:"calls"`
}

// MaxCalls is how many calls a record has at most.
const MaxCalls = 10_000

// maxRecordLine is the length in bytes of the longest line of records, its end included.
const maxRecordLine = 64 << 10

var (
	errNoTime    = errors.New("a record without a time after 1970")
	errNoTenant  = errors.New("a record without a tenant")
	errNegative  = errors.New("a record with negative points")
	errParts     = errors.New("a record whose parts are not as many as its operations, negative, or of more than 10000 calls")
	errNotRecord = errors.New("not a record in JSON")
	errTooLong   = errors.New("a record that is longer than a line of 64 KiB")
)

func (r *Record) check() error {
	switch {
	case r.At.UnixMilli() <= 0:
		return errNoTime
	case r.Tenant == "":
		return errNoTenant
	case r.Points < 0:
		return errNegative
	}
	return r.checkParts()
}

func (r *Record) checkParts() error {
	if r.Parts == nil {
		return nil
	}
	calls := int64(0)
	for _, part := range r.Parts {
		if part.Calls < 0 || part.Calls > MaxCalls {
			return errParts
		}
		calls += part.Calls
	}
	if calls > MaxCalls || len(r.Parts) != len(r.Operations) {
		return errParts
	}
	return nil
}

// Read yields the records of JSON lines. Empty lines are skipped. The first line that does
// not fit, or is longer than 64 KiB, ends the sequence with an error that names it and never quotes
// it.
func Read(r io.Reader) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxRecordLine)
		number := 0
		for lines.Scan() {
			number++
			if len(lines.Bytes()) == 0 {
				continue
			}
			var record Record
			err := errNotRecord
			if json.Unmarshal(lines.Bytes(), &record) == nil {
				err = record.check()
			}
			if err != nil {
				yield(Record{}, fmt.Errorf("simulate: line %d: %w", number, err))
				return
			}
			if !yield(record, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(Record{}, fmt.Errorf("simulate: line %d: %w", number+1, err))
		}
	}
}

// Writer writes records as JSON lines, for [Read]. It is safe for concurrent use, and
// writes each line in one call.
type Writer struct {
	mu sync.Mutex
	w  io.Writer
}

// NewWriter returns a writer to w, which it does not buffer or close.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: w}
}

// Write writes one record. It returns the error of the writer beneath, or that of a record which
// [Run] or [Read] would refuse: such a record is left out, or it would end every replay.
func (w *Writer) Write(record Record) error {
	if err := record.check(); err != nil {
		return err
	}
	line, err := json.Marshal(record)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if len(line) > maxRecordLine {
		return errTooLong
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = w.w.Write(line)
	return err
}
