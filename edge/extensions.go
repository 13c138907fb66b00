package edge

// countExtensions returns the bound that the extensions of an operation break, nil if they break none.
func (c *DocumentConfig) countExtensions(extensions map[string]any) *bound {
	if c.MaxExtensions < 0 {
		return nil
	}
	var t tally
	if t.members(extensions, c.MaxExtensions); t.values > c.MaxExtensions {
		return &bound{ruleExtensions, t.values, c.MaxExtensions}
	}
	return nil
}
