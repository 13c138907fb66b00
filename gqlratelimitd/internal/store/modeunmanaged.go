package store

import (
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// SwitchKey is what a mode switch in Redis is about: all tenants where Tenant is empty, and all operations where Operation is.
type SwitchKey struct{ Tenant, Operation string }

// UnmanagedSwitch is a mode switch in Redis that nobody has set here. By and Reason are what it says itself.
type UnmanagedSwitch struct {
	SwitchKey
	Mode bucket.Mode
	// Until is when it ends, and Since when it was set, by the clock of who has set it.
	Until, Since time.Time
	By, Reason   string
	// Found is when it was seen first. It is set by [Tx.PutUnmanagedSwitch].
	Found time.Time
}

func scanUnmanagedSwitch(row scanner, s *UnmanagedSwitch) error {
	var mode string
	err := row.Scan(&s.Tenant, &s.Operation, &mode, instant{&s.Until}, &s.By, &s.Reason, instant{&s.Since}, instant{&s.Found})
	if err != nil {
		return err
	}
	s.Mode, err = number("mode", mode, bucket.Off)
	return err
}

// UnmanagedSwitches returns all of them, by what they are about: at most [MaxPage], of which Redis has fewer.
func (v *View) UnmanagedSwitches() ([]UnmanagedSwitch, error) {
	return many(v, scanUnmanagedSwitch,
		"SELECT tenant, operation, mode, until, author, reason, at, found FROM mode_unmanaged ORDER BY tenant, operation LIMIT $1", MaxPage)
}

// PutUnmanagedSwitch notes a switch.
func (tx *Tx) PutUnmanagedSwitch(s *UnmanagedSwitch) error {
	s.Found = tx.now
	return tx.exec(`INSERT INTO mode_unmanaged (tenant, operation, mode, until, author, reason, at, found) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (tenant, operation) DO UPDATE SET mode = excluded.mode, until = excluded.until, author = excluded.author,
		reason = excluded.reason, at = excluded.at, found = excluded.found`,
		[]byte(s.Tenant), []byte(s.Operation), s.Mode.String(), micros(s.Until), []byte(s.By), []byte(s.Reason), micros(s.Since), micros(s.Found))
}

// RemoveUnmanagedSwitch forgets a switch that is there no longer.
func (tx *Tx) RemoveUnmanagedSwitch(key SwitchKey) error {
	return tx.exec("DELETE FROM mode_unmanaged WHERE tenant = $1 AND operation = $2", []byte(key.Tenant), []byte(key.Operation))
}
