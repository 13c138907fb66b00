package directory

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/follow"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// diskMark is the first line of a file of records. The second one is the mark in JSON, then comes a line for each tenant, and
// the last one is the SHA-256 of all before it in hexadecimal: what is half written is refused.
const diskMark = "#ratelimit-directory 1\n"

// maxDiskLine is how many bytes a line has: a name of any bytes and a document, both escaped.
const maxDiskLine = 4*tiers.MaxLongName + 6*tiers.MaxRecord + 128

// diskEntry is a line of the file. The tenant may hold any bytes.
type diskEntry struct {
	Tenant   []byte          `json:"tenant"`
	Revision uint64          `json:"revision,omitempty"`
	Document json.RawMessage `json:"document,omitempty"`
}

var (
	errForeign = errors.New("directory: this is no file of records")
	errCut     = errors.New("directory: the file of records is cut off, or was changed")
)

// saveEvery is how often the file is written if anything has changed.
const saveEvery = 30 * time.Second

// saveChanged writes the file if something has changed since it was written.
func (d *Directory) saveChanged(ctx context.Context) {
	d.mu.Lock()
	changed, mark := d.changed, d.mark
	var entries []diskEntry
	if changed != d.saved && mark.Origin != "" {
		entries = d.entries()
	}
	d.mu.Unlock()
	if entries == nil {
		return
	}
	if err := writeFile(d.cfg.LastGood, mark, entries); err != nil {
		d.cfg.Observe.Logger.ErrorContext(ctx, "directory: the last good records could not be written to the disk",
			slog.String("path", d.cfg.LastGood), slog.String("error", shortened(err)))
		return
	}
	d.mu.Lock()
	d.saved = changed
	d.mu.Unlock()
}

// entries returns what holds in the cache, the oldest first. What is to be asked for again is among it with no revision, so that it is
// asked for after a start as well.
func (d *Directory) entries() []diskEntry {
	entries := make([]diskEntry, 0, d.cache.known.count+d.cache.absent.count)
	for _, l := range [...]*list{&d.cache.absent, &d.cache.known} {
		for e := l.oldest; e != nil; e = e.newer {
			saved := diskEntry{Tenant: []byte(e.tenant), Revision: e.revision + 1, Document: document(e.record())}
			if e.epoch.Load() != d.epoch.Load() {
				saved.Revision = 0
			}
			entries = append(entries, saved)
		}
	}
	return entries
}

// writeFile puts the records in the place of a file.
func writeFile(path string, mark Mark, entries []diskEntry) error {
	return follow.WriteFile(path, func(file io.Writer) error {
		sum := sha256.New()
		buffered := bufio.NewWriter(file)
		to := io.MultiWriter(buffered, sum)
		// The first error of a buffered writer is that of Flush.
		_, _ = io.WriteString(to, diskMark)
		encoder := json.NewEncoder(to)
		encoder.SetEscapeHTML(false)
		err := encoder.Encode(mark)
		for i := range entries {
			err = errors.Join(err, encoder.Encode(&entries[i]))
		}
		_, _ = fmt.Fprintf(buffered, "%x\n", sum.Sum(nil))
		return errors.Join(err, buffered.Flush())
	})
}

// restore reads the file, if there is one, into the cache. A file that is not whole leaves the cache empty.
func (d *Directory) restore() error {
	if d.cfg.LastGood == "" {
		return nil
	}
	// Opening a pipe would wait for its writer.
	info, err := os.Stat(d.cfg.LastGood)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && (!info.Mode().IsRegular() || info.Size() > 16*d.cfg.MaxBytes) {
		err = errForeign
	}
	if err != nil {
		return err
	}
	file, err := os.Open(d.cfg.LastGood)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := d.scan(file); err != nil {
		d.cache, d.mark = newCache(d.cfg.MaxBytes), Mark{}
		return err
	}
	return nil
}

// scan reads the lines of a file. One that has a record which cannot be read any more leaves that out: its tenant is asked for.
func (d *Directory) scan(file io.Reader) error {
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxDiskLine)
	sum := sha256.New()
	next := func() []byte {
		if !lines.Scan() {
			return nil
		}
		return lines.Bytes()
	}
	take := func(line []byte) {
		_, _ = sum.Write(line) // It takes everything.
		_, _ = sum.Write([]byte("\n"))
	}
	first := next()
	if string(first)+"\n" != diskMark {
		return errForeign
	}
	take(first)
	second := next()
	if err := json.Unmarshal(second, &d.mark); err != nil || d.mark.Origin == "" || len(d.mark.Origin) > MaxOrigin {
		return errCut
	}
	take(second)
	for line := next(); line != nil; line = next() {
		if !bytes.HasPrefix(line, []byte("{")) {
			if string(line) != hex.EncodeToString(sum.Sum(nil)) || next() != nil {
				return errCut
			}
			return nil
		}
		take(line)
		var e diskEntry
		if err := json.Unmarshal(line, &e); err != nil {
			return errCut
		}
		d.keep(&e)
	}
	return errCut
}

// keep puts what was on the disk into the cache.
func (d *Directory) keep(e *diskEntry) {
	var record *tiers.Record
	if len(e.Document) > 0 {
		var err error
		if record, err = tiers.ParseRecord(e.Document); err != nil {
			return
		}
	}
	if tenant := string(e.Tenant); tenant != "" && len(tenant) <= tiers.MaxLongName {
		revision, epoch := uint64(0), uint32(0)
		if e.Revision > 0 {
			revision, epoch = e.Revision-1, d.epoch.Load()
		}
		d.cache.put(tenant, record, revision, epoch)
	}
}
