package websocket_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/websocket"
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
		counted := websocket.FramesIn(sent, chunk)
		require.Equal(t, len(lengths), counted, "in chunks of %d bytes", chunk)
	}
}

func TestALengthThatIsNoneOverflowsNothing(t *testing.T) {
	t.Parallel()
	require.Equal(t, 1, websocket.FramesIn(append([]byte{0x89, 0x80 | 127}, bytes.Repeat([]byte{0xff}, 10_000)...), 100))
}

func TestTheValuesOfMessagesCountAsBytes(t *testing.T) {
	t.Parallel()
	message := func(opcode byte, text string) []byte {
		mask := []byte{1, 2, 3, 4}
		sent := binary.BigEndian.AppendUint16([]byte{opcode, 0x80 | 126}, uint16(len(text)))
		sent = append(sent, mask...)
		for i := range len(text) {
			sent = append(sent, text[i]^mask[i%4])
		}
		return sent
	}
	const text, frame = 0x81, 128
	list := "[" + strings.Repeat("{},", 999) + "{}]"
	for name, c := range map[string]struct {
		sent  []byte
		extra int
	}{
		"a message":             {message(text, list), frame + 16*1001},
		"two messages":          {append(message(text, `"[,,`), message(text, "[0,0]")...), 2*frame + 16*4},
		"a message in parts":    {bytes.Join([][]byte{message(1, `["`), message(0x89, "[,,,"), message(0x80, `,,",0]`)}, nil), 3*frame + 16*3},
		"a ping":                {message(0x89, list), frame},
		"a text without values": {message(text, `"`+strings.Repeat(",", 1000)+`"`), frame + 16},
	} {
		for _, chunk := range []int{1, 3, 4096} {
			require.Equal(t, c.extra, websocket.ExtraIn(c.sent, chunk), "%s in chunks of %d bytes", name, chunk)
		}
	}
}
