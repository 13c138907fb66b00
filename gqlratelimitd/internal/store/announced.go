package store

// Announced returns how many entries of the audit log, from the first on, have arrived at the place of a name. 0 is none.
func (v *View) Announced(name string) (int64, error) {
	next, err := one(v, scanNumber, "SELECT next FROM announced WHERE name = $1", name)
	if err != nil || next == nil {
		return 0, err
	}
	return *next, nil
}

// Announce notes that so many have. What is known to have arrived stays so: a smaller number changes nothing.
func (tx *Tx) Announce(name string, next int64) error {
	return tx.exec(`INSERT INTO announced (name, next) VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET next = excluded.next WHERE announced.next < excluded.next`, name, next)
}
