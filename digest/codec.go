package digest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/gqlgen-ratelimit/ratelimit/event"
)

// ErrUnreadable says that something is no digest, refusal or chunk of this version or an older one.
var ErrUnreadable = errors.New("digest: it cannot be read")

// Encode returns the digest as JSON of at most [MaxDigest] bytes. Where the names of tenants are too long for that, those that have
// asked least are left out.
func (d *Digest) Encode() []byte {
	short := *d
	for {
		// A digest has no value that JSON has not.
		text, _ := json.Marshal(&short)
		if len(text) <= MaxDigest || len(short.Tenants) == 0 {
			return text
		}
		short.Tenants = slices.Clone(short.Tenants)
		slices.SortFunc(short.Tenants, func(a, b Tenant) int { return cmp.Compare(b.Decisions, a.Decisions) })
		short.Tenants = short.Tenants[:len(short.Tenants)*3/4]
		slices.SortFunc(short.Tenants, func(a, b Tenant) int { return cmp.Compare(a.Name, b.Name) })
	}
}

// Encode returns the refusal as JSON, of at most [MaxRefusal] bytes if a collector has made it.
func (r *Refusal) Encode() []byte {
	text, _ := json.Marshal(r)
	return text
}

// Encode returns the chunk as JSON, of at most [MaxChunk] bytes if a collector has made it.
func (c *Chunk) Encode() []byte {
	text, _ := json.Marshal(c)
	return text
}

// Decode reads a digest. The error is [ErrUnreadable].
func (d *Digest) Decode(text []byte) error {
	var read Digest
	if err := decode(text, MaxDigest, &read, &read.Version); err != nil {
		return err
	}
	if len(read.Tenants) > 4*maxTop || len(read.Overrides) > maxUses || read.Modes != nil && len(read.Modes.InForce) > maxModes {
		return fmt.Errorf("%w: it lists more than fits", ErrUnreadable)
	}
	*d = read
	return nil
}

// Decode reads a refusal. The error is [ErrUnreadable].
func (r *Refusal) Decode(text []byte) error {
	var read Refusal
	if err := decode(text, MaxRefusal, &read, &read.Version); err != nil {
		return err
	}
	*r = read
	return nil
}

// Decode reads a chunk. The error is [ErrUnreadable].
func (c *Chunk) Decode(text []byte) error {
	var read Chunk
	if err := decode(text, MaxChunk, &read, &read.Version); err != nil {
		return err
	}
	if len(read.Records) > maxRecords || slices.ContainsFunc(read.Records, Record.tooLong) {
		return fmt.Errorf("%w: it lists more than fits", ErrUnreadable)
	}
	*c = read
	return nil
}

// tooLong says that a record lists more than a collector does. Few bytes of JSON, such as [{},{}], become many in memory.
func (r Record) tooLong() bool {
	const maxUnits = 4 * event.MaxUnits
	return max(len(r.Fields), len(r.Parts), len(r.Carried)) > maxFields || len(r.Units) > maxUnits
}

func decode(text []byte, most int, into any, version *int) error {
	if len(text) > most {
		return fmt.Errorf("%w: it has %d bytes, and %d fit", ErrUnreadable, len(text), most)
	}
	// What is wrong with it is not repeated: anybody may have written it.
	if json.Unmarshal(text, into) != nil {
		return ErrUnreadable
	}
	if *version < 1 || *version > Version {
		return fmt.Errorf("%w: its version is %d, and this build reads 1 to %d", ErrUnreadable, *version, Version)
	}
	return nil
}
