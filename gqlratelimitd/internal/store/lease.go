package store

// Lease says who does what one daemon does at a time. There is no time in it, because the clocks of daemons differ: who holds a
// lease counts its beat on, and whoever sees it stand still for long enough, by a clock of their own, takes it.
type Lease struct {
	// Holder is who has it, empty for nobody.
	Holder string
	// Beat differs from that of every other moment in which somebody has taken or kept the lease.
	Beat uint64
}

// Lease returns a lease by its name. The zero value is one that nobody ever had.
func (v *View) Lease(name string) (Lease, error) {
	found, err := one(v, func(row scanner, l *Lease) error { return row.Scan(&l.Holder, &l.Beat) }, "SELECT holder, beat FROM lease WHERE name = $1", name)
	if err != nil || found == nil {
		return Lease{}, err
	}
	return *found, nil
}

// TakeLease gives a lease to a holder, empty for nobody, if it still is what is expected, and returns what it is then.
func (tx *Tx) TakeLease(name, holder string, expected Lease) (Lease, error) {
	there, err := tx.Lease(name)
	if err != nil || there != expected {
		return there, err
	}
	next := Lease{holder, there.Beat + 1}
	return next, tx.exec("INSERT INTO lease (name, holder, beat) VALUES ($1, $2, $3) ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, beat = excluded.beat",
		name, next.Holder, next.Beat)
}
