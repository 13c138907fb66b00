package edge

// ReachOf is what MaxReach bounds in a document, or a part of it that is more than most.
func ReachOf(document string, most int) int {
	c := DocumentConfig{
		MaxBytes: None, MaxTokens: None, MaxDepth: None, MaxOperations: None, MaxFragments: None, MaxName: None, MaxReach: most,
	}
	if broken := c.count(document); broken != nil {
		return broken.given
	}
	return most
}
