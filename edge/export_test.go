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

// ExtraIn is what the bytes of a WebSocket count besides themselves, which come in chunks of so many.
func ExtraIn(sent []byte, chunk int) (extra int) {
	var f frames
	for at := 0; at < len(sent); at += chunk {
		extra += f.extra(sent[at:min(len(sent), at+chunk)])
	}
	return extra
}

// ValuesIn counts the values of a text of JSON that comes in chunks of so many bytes.
func ValuesIn(text []byte, chunk int) int {
	var v values
	for at := 0; at < len(text); at += chunk {
		v.count(text[at:min(len(text), at+chunk)])
	}
	return v.n
}
