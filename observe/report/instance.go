package report

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"
)

// MaxInstanceName is how many bytes the name of an instance has at most.
const MaxInstanceName = 128

// InstanceName returns a name for this instance: that of the machine and some random digits.
func InstanceName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "instance"
	}
	var random [4]byte
	// It never fails.
	_, _ = rand.Read(random[:])
	host = strings.ToValidUTF8(host[:min(len(host), MaxInstanceName-2*len(random)-1)], "")
	return host + "-" + hex.EncodeToString(random[:])
}

// CheckInstanceName returns what is wrong with the name of an instance: it has 1 to [MaxInstanceName] bytes of UTF-8, none of
// which is zero.
func CheckInstanceName(name string) error {
	if name == "" || len(name) > MaxInstanceName || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return fmt.Errorf("a name of %d bytes: write 1 to %d bytes of UTF-8 without a zero", len(name), MaxInstanceName)
	}
	return nil
}
