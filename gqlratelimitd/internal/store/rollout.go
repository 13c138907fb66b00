package store

// Rollout is the newest roll-out of a policy.
type Rollout struct {
	// Version counts the states of all roll-outs from 1 on.
	Version uint64
	// State is JSON, in the words of who drives it.
	State []byte
}

// Rollout returns the newest roll-out, nil if there never was one.
func (v *View) Rollout() (*Rollout, error) {
	return one(v, func(row scanner, r *Rollout) error { return row.Scan(&r.Version, &r.State) }, "SELECT version, state FROM rollout WHERE id = 1")
}

// PutRollout writes a state in the place of the one whose version is one less, 0 for none, and otherwise returns a [*ConflictError].
func (tx *Tx) PutRollout(next *Rollout) error {
	there, err := tx.Rollout()
	if err != nil {
		return err
	}
	if there == nil {
		there = &Rollout{}
	}
	if next.Version != there.Version+1 {
		return &ConflictError{Current: there.Version}
	}
	return tx.exec("INSERT INTO rollout (id, version, state) VALUES (1, $1, $2) ON CONFLICT (id) DO UPDATE SET version = excluded.version, state = excluded.state",
		next.Version, stored(next.State))
}
