package capacity

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/gqlgen-ratelimit/ratelimit/cmd/gqlratelimit/internal/session"
)

// Figures are what was measured on a Redis. All else in a plan is calculated.
type Figures struct {
	Version int `json:"version"`
	// Command measures them again. Date, Server and Machine say when and where they were measured.
	Command string `json:"command"`
	Date    string `json:"date"`
	Server  string `json:"server"`
	Machine string `json:"machine"`
	// Alone is the work of Redis for calls that come one after the other, and Pipelined for those of 64 callers that share
	// pipelines.
	Alone     Processor `json:"aloneMicros"`
	Pipelined Processor `json:"pipelinedMicros"`
	Memory    Memory    `json:"bytes"`
}

// Processor is processor time of Redis in microseconds, network included.
type Processor struct {
	// Take is a take of one owner with as many limits as LimitSteps says, and Owner what each further owner adds.
	Take  Steps `json:"take"`
	Owner Steps `json:"owner"`
	// Claim is what an idempotency key adds, its settlement included.
	Claim float64 `json:"claim"`
	// Settle is a settlement of a charge without a key.
	Settle float64 `json:"settle"`
	// Usage is what counting adds to a take.
	Usage float64 `json:"usage"`
	// Exchange is one of the only holder that leases four limits of one owner, and Holder what each further holder of that owner adds to it.
	Exchange float64 `json:"exchange"`
	Holder   float64 `json:"holder"`
}

// Memory is what one of each takes in the memory of Redis, in bytes, its key and expiry included.
type Memory struct {
	// Owner is the state of an owner with as many limits as LimitSteps says.
	Owner Steps `json:"owner"`
	// Record is that of an idempotency key, without its answer.
	Record float64 `json:"record"`
	// UsageHour is the usage of a tenant in an hour.
	UsageHour float64 `json:"usageHour"`
	// Holding is what each holder of an owner with four limits adds.
	Holding float64 `json:"holding"`
}

// Steps is a figure for each number of limits in LimitSteps.
type Steps [4]float64

// LimitSteps are the numbers of limits that were measured.
var LimitSteps = [4]int{1, 2, 4, 8}

// of is the figure for a number of limits: that of the next larger number that was measured. Beyond the last one it grows in proportion.
func (s *Steps) of(limits int) float64 {
	for i, step := range LimitSteps {
		if limits <= step {
			return s[i]
		}
	}
	last := len(LimitSteps) - 1
	return s[last] * float64(limits) / float64(LimitSteps[last])
}

//go:embed figures.json
var measured []byte

// maxFigures is the size in bytes of the largest file of figures.
const maxFigures = 64 << 10

// readFigures reads those of a file, or those that were measured here if none is named.
func readFigures(path string) (*Figures, error) {
	text, from := measured, "figures.json"
	if path != "" {
		var err error
		if text, err = session.ReadFile(path, maxFigures); err != nil {
			return nil, err
		}
		from = path
	}
	f := new(Figures)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(f); err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: something follows the figures", from)
	}
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	return f, nil
}

// check says which figure nothing can be calculated from.
func (f *Figures) check() error {
	if f.Version != session.FormatVersion {
		return fmt.Errorf("the figures are of version %d, this command reads version %d", f.Version, session.FormatVersion)
	}
	const most = 1 << 30
	wrong := func(name string, n float64) error {
		if n > 0 && n <= most && !math.IsNaN(n) {
			return nil
		}
		return fmt.Errorf("%s is %v; a number above 0 fits, as the command that measures them writes it", name, n)
	}
	var all []error
	steps := func(name string, s *Steps) {
		for i, n := range s {
			all = append(all, wrong(fmt.Sprintf("%s of %d limits", name, LimitSteps[i]), n))
		}
	}
	for _, of := range []struct {
		name string
		*Processor
	}{{"aloneMicros", &f.Alone}, {"pipelinedMicros", &f.Pipelined}} {
		name, p := of.name, of.Processor
		steps(name+".take", &p.Take)
		steps(name+".owner", &p.Owner)
		all = append(all, wrong(name+".claim", p.Claim), wrong(name+".settle", p.Settle), wrong(name+".usage", p.Usage), wrong(name+".exchange", p.Exchange), wrong(name+".holder", p.Holder))
	}
	steps("bytes.owner", &f.Memory.Owner)
	all = append(all, wrong("bytes.record", f.Memory.Record), wrong("bytes.usageHour", f.Memory.UsageHour), wrong("bytes.holding", f.Memory.Holding))
	return errors.Join(all...)
}
