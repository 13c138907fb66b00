package store

// NotedSwitches returns the fingerprints of the mode switches that the audit log has, in order: at most [MaxPage], of which a Redis has fewer.
func (v *View) NotedSwitches() ([]string, error) {
	return many(v, func(row scanner, fingerprint *string) error { return row.Scan(fingerprint) },
		"SELECT fingerprint FROM mode_noted ORDER BY fingerprint LIMIT $1", MaxPage)
}

// NoteSwitch notes that the audit log has a mode switch. To note it again changes nothing.
func (tx *Tx) NoteSwitch(fingerprint string) error {
	return tx.exec("INSERT INTO mode_noted (fingerprint, at) VALUES ($1, $2) ON CONFLICT (fingerprint) DO NOTHING", fingerprint, micros(tx.now))
}

// ForgetSwitch forgets a mode switch that is there no longer.
func (tx *Tx) ForgetSwitch(fingerprint string) error {
	return tx.exec("DELETE FROM mode_noted WHERE fingerprint = $1", fingerprint)
}
