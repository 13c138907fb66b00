package policy

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of what instances say in a feed.
const (
	// MaxInstanceName is how many bytes the name of an instance has at most.
	MaxInstanceName = 128
	// MaxReport is how many bytes [Status.Report] has at most.
	MaxReport = 8 << 10
)

// Instance is what an instance has last said of itself in a feed that takes reports.
type Instance struct {
	// Name tells it from others.
	Name string
	// Seen is when it has said so, by the clock of the feed.
	Seen time.Time
	// Status is what it serves and what it refuses. Anybody who can write into the feed can have written it.
	Status Status
}

// UnreadError says of how many instances a feed has reports that cannot be read. What is returned beside it is good.
type UnreadError struct{ Instances int }

// Error says how many.
func (e *UnreadError) Error() string {
	return fmt.Sprintf("policy: the reports of %d instances cannot be read", e.Instances)
}

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

// Report returns the status as JSON of at most [MaxReport] bytes. The texts of errors are left out where they are too long: the
// log of the instance has all of them.
func (s Status) Report() string {
	said := s.String()
	if len(said) <= MaxReport {
		return said
	}
	s.Failure, s.Unsaved = "", ""
	if s.Refused != nil {
		refused := *s.Refused
		refused.Error = "too long to be reported: see the log of the instance"
		s.Refused = &refused
	}
	return s.String()
}
