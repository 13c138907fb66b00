package redisusage

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"github.com/gqlgen-ratelimit/ratelimit/usage"
)

// Once writes now.
func (w *Writer) Once(ctx context.Context) { w.once(ctx) }

// Run is that of the writer.
func (w *Writer) Run() string { return w.run }

// Kill ends the writer without a last write, as the end of a process does.
func (w *Writer) Kill() {
	w.writing.Lock()
	w.cfg.Recorder, _ = usage.NewRecorder(usage.RecorderConfig{})
	w.writing.Unlock()
	w.loop.Close()
}

// Teller tells batches in any minute.
type Teller struct{ w *Writer }

// NewTeller returns one for a run of an instance.
func NewTeller(cfg Config, instance, run string) *Teller {
	return NewBoundedTeller(cfg, instance, run, maxBytes)
}

// NewBoundedTeller returns one that keeps so many bytes of reports.
func NewBoundedTeller(cfg Config, instance, run string, bytes int) *Teller {
	recorder, _ := usage.NewRecorder(usage.RecorderConfig{})
	told, _ := newInstruments(noop.NewMeterProvider(), recorder)
	return &Teller{&Writer{cfg: WriterConfig{Config: cfg.withDefaults(), Instance: instance, Bytes: bytes}, run: run, told: told}}
}

// Tell tells a batch.
func (t *Teller) Tell(ctx context.Context, told time.Time, batch usage.Batch) error {
	if _, err := t.w.seen(ctx); err != nil {
		return err
	}
	minute := told.Unix() / secondsOfMinute
	if err := t.w.counted(ctx, minute, batch.Counted); err != nil {
		return err
	}
	if err := t.w.reports(ctx, minute, &batch); err != nil {
		return err
	}
	return t.w.forget(ctx)
}

// Late has the next command be one that was sent before others.
func (t *Teller) Late(by int64) { t.w.number -= by }

// Write writes now, and says whether that has failed.
func (w *Writer) Write(ctx context.Context) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	return w.write(ctx)
}
