package edge

// countExtensions returns the bound that the extensions of an operation break, nil if they break none.
func (c *DocumentConfig) countExtensions(extensions map[string]any) *bound {
	if c.MaxExtensions < 0 {
		return nil
	}
	if left := lessValues(extensions, c.MaxExtensions+1); left < 0 {
		return &bound{ruleExtensions, c.MaxExtensions - left, c.MaxExtensions}
	}
	return nil
}

// lessValues takes from left how many values there are in one of JSON, the value itself among them, until nothing is left.
func lessValues(value any, left int) int {
	left--
	switch value := value.(type) {
	case map[string]any:
		for _, element := range value {
			if left < 0 {
				break
			}
			left = lessValues(element, left)
		}
	case []any:
		for _, element := range value {
			if left < 0 {
				break
			}
			left = lessValues(element, left)
		}
	}
	return left
}
