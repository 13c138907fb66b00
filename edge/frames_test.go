package edge_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/edge"
)

// frame is one of a client with so many bytes, whose mask changes nothing.
func frame(length int) []byte {
	header := []byte{0x89}
	switch {
	case length < 126:
		header = append(header, 0x80|byte(length))
	case length < 1<<16:
		header = binary.BigEndian.AppendUint16(append(header, 0x80|126), uint16(length))
	default:
		header = binary.BigEndian.AppendUint64(append(header, 0x80|127), uint64(length))
	}
	return append(append(header, 0, 0, 0, 0), bytes.Repeat([]byte{0x89}, length)...)
}

func TestFramesAreCountedHoweverTheyCome(t *testing.T) {
	t.Parallel()
	var sent []byte
	lengths := []int{0, 1, 0, 125, 126, 127, 65_535, 65_536, 0}
	for _, length := range lengths {
		sent = append(sent, frame(length)...)
	}
	for _, chunk := range []int{1, 2, 3, 7, 4096, len(sent)} {
		counted := edge.FramesIn(sent, chunk)
		require.Equal(t, len(lengths), counted, "in chunks of %d bytes", chunk)
	}
}

func TestALengthThatIsNoneOverflowsNothing(t *testing.T) {
	t.Parallel()
	require.Equal(t, 1, edge.FramesIn(append([]byte{0x89, 0x80 | 127}, bytes.Repeat([]byte{0xff}, 10_000)...), 100))
}
