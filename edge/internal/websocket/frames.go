package websocket

import (
	"encoding/binary"
	"math"

	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/jsonvalue"
)

// frames finds the frames of a WebSocket in what is read of it (RFC 6455, section 5.2), and the values of JSON in their messages. The
// zero value is at the beginning of a frame. It is not safe for concurrent use.
type frames struct {
	// header is what has come of the header of a frame, and rest is how many bytes of the frame are to come.
	header [14]byte
	have   int
	rest   uint64
	// mask is that of the frame, and at is which of its bytes is next.
	mask [maskBytes]byte
	at   int
	// message says that the frame is a part of one, and values are those of all messages.
	message bool
	values  jsonvalue.Counter
}

// Bits and values of the first two bytes of a frame.
const (
	opcodeBits   = 0x0f
	continuation = 0
	textFrame    = 1
	firstControl = 8
	maskedBit    = 0x80
	length16     = 126
	length64     = 127
	shortHeader  = 2
	maskBytes    = 4
)

// bytesPerFrame is what each frame counts besides its own bytes: a ping of 6 bytes takes as long as a kilobyte of text.
const bytesPerFrame = 128

// extra is what the bytes that come next count besides themselves.
func (f *frames) extra(p []byte) int {
	before := f.values.N
	return bytesPerFrame*f.count(p) + jsonvalue.Bytes*(f.values.N-before)
}

// count returns how many frames begin in the bytes that come next.
func (f *frames) count(p []byte) (begun int) {
	for len(p) > 0 {
		if f.rest > 0 {
			n := min(f.rest, uint64(len(p)))
			f.read(p[:n])
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
	lengthEnd := shortHeader
	switch length {
	case length16:
		lengthEnd += 2
	case length64:
		lengthEnd += 8
	}
	end := lengthEnd
	if f.header[1]&maskedBit != 0 {
		end += maskBytes
	}
	if f.have < end {
		return
	}
	switch length {
	case length16:
		length = uint64(binary.BigEndian.Uint16(f.header[shortHeader:]))
	case length64:
		// More is no length, and who reads the frame ends the connection.
		length = min(binary.BigEndian.Uint64(f.header[shortHeader:]), math.MaxInt64)
	}
	f.have, f.rest, f.at, f.mask = 0, length, 0, [maskBytes]byte{}
	copy(f.mask[:], f.header[lengthEnd:end])
	opcode := f.header[0] & opcodeBits
	if f.message = opcode < firstControl; f.message && opcode != continuation {
		f.values.Next()
	}
}

// read counts values in what comes of a frame.
func (f *frames) read(p []byte) {
	if !f.message {
		return
	}
	var plain [512]byte
	for len(p) > 0 {
		n := copy(plain[:], p)
		for i := range n {
			plain[i] ^= f.mask[(f.at+i)%maskBytes]
		}
		f.at = (f.at + n) % maskBytes
		f.values.Count(plain[:n])
		p = p[n:]
	}
}
