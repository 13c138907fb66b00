package edge

import (
	"encoding/binary"
	"math"
)

// frames finds the frames of a WebSocket in what is read of it (RFC 6455, section 5.2). The zero value is at the beginning of a
// frame. It is not safe for concurrent use.
type frames struct {
	// header is what has come of the header of a frame, without a mask, and rest is how many bytes of the frame are to come.
	header [10]byte
	have   int
	rest   uint64
}

// Bits and values of the second byte of a frame.
const (
	maskedBit   = 0x80
	length16    = 126
	length64    = 127
	shortHeader = 2
	maskBytes   = 4
)

// count returns how many frames begin in the bytes that come next.
func (f *frames) count(p []byte) (begun int) {
	for len(p) > 0 {
		if f.rest > 0 {
			n := min(f.rest, uint64(len(p)))
			f.rest -= n
			p = p[n:]
			continue
		}
		if f.have == 0 {
			begun++
		}
		f.header[f.have] = p[0]
		f.have++
		p = p[1:]
		f.begin()
	}
	return begun
}

// begin knows how long the frame is when its header has come.
func (f *frames) begin() {
	if f.have < shortHeader {
		return
	}
	length := uint64(f.header[1] &^ maskedBit)
	switch {
	case length == length16 && f.have < shortHeader+2, length == length64 && f.have < shortHeader+8:
		return
	case length == length16:
		length = uint64(binary.BigEndian.Uint16(f.header[shortHeader:]))
	case length == length64:
		// More is no length, and who reads the frame ends the connection.
		length = min(binary.BigEndian.Uint64(f.header[shortHeader:]), math.MaxInt64)
	}
	f.have, f.rest = 0, length
	if f.header[1]&maskedBit != 0 {
		f.rest += maskBytes
	}
}
