package store

import (
	"fmt"
	"time"
)

const headSQL = "SELECT policy, directory, outbox FROM head WHERE id = 1"

// Head says how far the history has come.
type Head struct {
	// Policy is the newest revision of the policy, 0 before the first.
	Policy uint64
	// Directory is the newest change of a tenant or an override, 0 before the first. These have one count, so
	// that who has read as far as a number has missed none of them.
	Directory uint64

	outbox uint64
}

func (v *View) readHead(query string) (h Head, err error) {
	err = v.tx.QueryRowContext(v.ctx, query).Scan(&h.Policy, &h.Directory, &h.outbox)
	if err != nil {
		return h, fmt.Errorf("store: the head: %w", err)
	}
	return h, nil
}

// Head returns the head as of the moment of the view.
func (v *View) Head() (Head, error) { return v.readHead(headSQL) }

// Head returns the head with what the change has done to it.
func (tx *Tx) Head() Head { return tx.head }

// raiseDirectory takes the next revision of the directory.
func (tx *Tx) raiseDirectory() (uint64, error) {
	tx.head.Directory++
	return tx.head.Directory, tx.exec("UPDATE head SET directory = $1 WHERE id = 1", tx.head.Directory)
}

// Written is which change has written something, and who did it, why and when.
type Written struct {
	// Revision is that of [Head.Directory].
	Revision   uint64
	By, Reason string
	At         time.Time
}

// write checks what is there against what is expected, 0 for nothing, and takes the revision of the change. Who has written what is
// there, and removed it, is nothing.
func (tx *Tx) write(there *Written, expected uint64, by, reason string) (Written, error) {
	if there == nil {
		there = &Written{}
	}
	if there.Revision != expected {
		return Written{}, &ConflictError{Current: there.Revision, By: there.By, At: there.At}
	}
	revision, err := tx.raiseDirectory()
	return Written{Revision: revision, By: by, Reason: reason, At: tx.now}, err
}
