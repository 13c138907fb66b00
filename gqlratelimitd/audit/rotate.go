package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrOtherName says that the new key of a log has another name than the log.
var ErrOtherName = errors.New("audit: the new key of a log has the name of the log")

// Rotate changes the key that signs a log for another one of the same name: it appends the entry, which says who does it and why, with
// the new key as After, and two checkpoints: one in which the old key names the new one, and one of the new key. From then on
// the old key is no more good for this log.
//
// Where the old key is lost it is nil. Nothing vouches for the new one then, and who verifies the log has to be given it.
func Rotate(ctx context.Context, log Log, old, next *Key, e Entry) error {
	if next == nil || old != nil && old.Name() != next.Name() {
		return ErrOtherName
	}
	var err error
	if e.After, err = json.Marshal(map[string]string{"key": next.Public()}); err != nil {
		return fmt.Errorf("audit: rotate the key: %w", err)
	}
	return log.Change(ctx, func(ctx context.Context, storage Storage) error {
		c, err := signedBefore(ctx, storage, old, next.Name())
		if err != nil {
			return err
		}
		stored, err := Append(ctx, storage, e)
		if err != nil {
			return err
		}
		named, err := extend(ctx, storage, c)
		if err != nil {
			return err
		}
		named.Name, named.Time, named.Key = next.Name(), stored.Time, next.Public()
		if old != nil {
			if _, err := store(ctx, storage, named, old); err != nil {
				return err
			}
		}
		_, err = store(ctx, storage, named, next)
		return err
	})
}

// signedBefore reads the newest checkpoint of a log of that name, which the old key has to have signed. Where that one is lost, there
// is none, and everything is hashed again.
func signedBefore(ctx context.Context, storage Storage, old *Key, name string) (*Checkpoint, error) {
	if old != nil {
		c, _, err := newest(ctx, storage, old)
		return c, err
	}
	signed, err := storage.Newest(ctx)
	if err != nil || len(signed) == 0 {
		return nil, err
	}
	if c, err := readCheckpoint(signed); err != nil || c.Name != name {
		return nil, ErrOtherName
	}
	return nil, nil
}
