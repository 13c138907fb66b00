package store

// SetUsageNames sets how many names of a kind a tenant has. It is called before the database is used.
func (db *DB) SetUsageNames(names int) { db.names = names }
