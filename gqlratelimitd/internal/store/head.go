package store

import "fmt"

const headSQL = "SELECT policy, directory FROM head WHERE id = 1"

// Head says how far the history has come.
type Head struct {
	// Policy is the newest revision of the policy, 0 before the first.
	Policy uint64
	// Directory is the newest change of a tenant, an override or a mode switch, 0 before the first.
	Directory uint64
}

func (v *View) readHead(query string) (h Head, err error) {
	err = v.tx.QueryRowContext(v.ctx, query).Scan(&h.Policy, &h.Directory)
	if err != nil {
		return h, fmt.Errorf("store: the head: %w", err)
	}
	return h, nil
}

// Head returns the head as of the moment of the view.
func (v *View) Head() (Head, error) { return v.readHead(headSQL) }

// Head returns the head with what the change has done to it.
func (tx *Tx) Head() Head { return tx.head }
