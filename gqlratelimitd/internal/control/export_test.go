package control

// BoundExports has exports of at most so many rows.
func (c *Control) BoundExports(rows int) { c.mostExported = rows }
