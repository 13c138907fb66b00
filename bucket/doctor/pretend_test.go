package doctor_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pretend starts a server that is none, for what no real one here does: it says of itself what INFO is to
// say, and answers commands, in lower case and with their arguments, as it is told. What it is not told it
// answers as a healthy server does. It returns its address.
func pretend(t *testing.T, info string, answer func(command string) string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn, info, answer)
		}
	}()
	return listener.Addr().String()
}

func serve(conn net.Conn, info string, answer func(string) string) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	for {
		command, err := readCommand(in)
		if err != nil {
			return
		}
		reply := ""
		if answer != nil {
			reply = answer(command)
		}
		if reply == "" {
			reply = healthyReply(command, info)
		}
		if _, err := io.WriteString(conn, reply); err != nil {
			return
		}
	}
}

func healthyReply(command, info string) string {
	switch name, _, _ := strings.Cut(command, " "); {
	case name == "hello":
		return "-ERR unknown command 'HELLO'\r\n"
	case name == "info":
		return fmt.Sprintf("$%d\r\n%s\r\n", len(info), info)
	case name == "evalsha" && strings.Contains(command, " 0000000000"):
		return "-NOSCRIPT No matching script\r\n"
	case name == "evalsha", name == "eval" && strings.Contains(command, "struct.unpack"):
		now := binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixMilli()))[2:]
		return "$7\r\n\x00" + string(now) + "\r\n"
	case name == "config", name == "eval", name == "time":
		return "*0\r\n"
	default:
		return "+OK\r\n"
	}
}

// readCommand reads an array of strings.
func readCommand(in *bufio.Reader) (string, error) {
	size := func() (int, error) {
		line, err := in.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	count, err := size()
	if err != nil {
		return "", err
	}
	words := make([]string, count)
	for i := range words {
		length, err := size()
		if err != nil {
			return "", err
		}
		text := make([]byte, length+2)
		if _, err := io.ReadFull(in, text); err != nil {
			return "", err
		}
		words[i] = string(text[:length])
	}
	words[0] = strings.ToLower(words[0])
	return strings.Join(words, " "), nil
}
