package websocket

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
