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

// FramesIn counts the frames in what comes in chunks of so many bytes.
func FramesIn(sent []byte, chunk int) (counted int) {
	var f frames
	for at := 0; at < len(sent); at += chunk {
		counted += f.count(sent[at:min(len(sent), at+chunk)])
	}
	return counted
}
