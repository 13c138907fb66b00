package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

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

// save keeps what is served on the disk, whenever it changes, and once more at the end. It is not part of asking: a disk
// that hangs keeps nobody from the next policy.
func (f *Follower) save(ctx context.Context) {
	again := time.NewTicker(saveAgain)
	defer again.Stop()
	for {
		f.saveServed(ctx)
		select {
		case <-ctx.Done():
			f.saveServed(ctx)
			return
		case <-f.saveDue:
		case <-again.C:
		}
	}
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
		if err != nil && f.status.Unsaved == "" {
			f.cfg.Observe.Logger.ErrorContext(ctx, "policy: the last good policy could not be written to the disk",
				slog.String("path", f.cfg.LastGood), slog.String("error", unsaved))
		}
		f.status.Unsaved = unsaved
	})
}

// writeRevision puts a revision in the place of a file: who reads it sees the old one or the new one, also after the machine
// has lost power.
func writeRevision(path string, r *Revision) (err error) {
	data, err := r.MarshalBinary()
	if err != nil {
		return err
	}
	folder := filepath.Dir(path)
	file, err := os.CreateTemp(folder, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err = os.Rename(file.Name(), path); err != nil {
		return err
	}
	return syncFolder(folder)
}

// syncFolder has the disk keep a rename.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	// Some file systems cannot sync a folder: the rename has happened all the same.
	_ = folder.Sync()
	return folder.Close()
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
