package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/internal/follow"
	"github.com/gqlgen-ratelimit/ratelimit/internal/guard"
)

// saveAgain is after how long a last good policy that could not be written is tried again.
const saveAgain = 10 * time.Second

// lastGood reads the last good policy from the disk and judges it as any other. It returns nil if none is kept.
func (f *Follower) lastGood() (*candidate, error) {
	if f.cfg.LastGood == "" {
		return nil, nil
	}
	data, err := readFile(f.cfg.LastGood, maxFile)
	if err != nil {
		return nil, err
	}
	r := &Revision{}
	if err := r.UnmarshalBinary(data); err != nil {
		return nil, err
	}
	snapshot, refused := f.inspect(r)
	if refused != nil {
		return nil, refused
	}
	f.saved = r.Head()
	return &candidate{r, snapshot, originLastGood}, nil
}

// saveServed writes what is served unless the disk has it.
func (f *Follower) saveServed(ctx context.Context) {
	f.mu.Lock()
	r := f.served.revision
	f.mu.Unlock()
	if r == nil || r.Head() == f.saved {
		return
	}
	err := guard.Call("writing the last good policy", func() error { return writeRevision(f.cfg.LastGood, r) })
	unsaved := ""
	if err == nil {
		f.saved = r.Head()
	} else {
		unsaved = errorText(err, maxReportText)
	}
	f.change(ctx, func() {
		news := (f.status.Unsaved == "") != (unsaved == "")
		if f.status.Unsaved = unsaved; news {
			now, s := time.Now(), f.statusOf(f.status)
			f.told.state(s.State.String(), &s, now)
		}
	})
}

// writeRevision puts a revision in the place of a file.
func writeRevision(path string, r *Revision) error {
	data, err := r.MarshalBinary()
	if err != nil {
		return err
	}
	return follow.WriteFile(path, func(to io.Writer) error {
		_, err := to.Write(data)
		return err
	})
}

var errNotRegular = errors.New("not a regular file")

// readFile reads a regular file of at most so many bytes.
func readFile(path string, most int) ([]byte, error) {
	// Opening a pipe would wait for its writer.
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "read", Path: path, Err: errNotRegular}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, int64(most)+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	if len(data) > most {
		return nil, &os.PathError{Op: "read", Path: path, Err: fmt.Errorf("larger than the %d bytes that fit", most)}
	}
	return data, nil
}
