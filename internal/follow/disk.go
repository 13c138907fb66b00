package follow

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"
)

// WriteFile puts what write writes in the place of a file: who reads it sees the old one or the new one, also after the machine has lost
// power.
func WriteFile(path string, write func(to io.Writer) error) (err error) {
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
	if err = write(file); err == nil {
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

// Keep calls save at each interval, whenever it is due, and once more when the context ends. It is not part of asking: a disk that hangs
// keeps nobody from what comes next. Nil is due never.
func Keep(ctx context.Context, every time.Duration, due <-chan struct{}, save func(ctx context.Context)) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			save(ctx)
			return
		case <-due:
		case <-ticker.C:
		}
		save(ctx)
	}
}
