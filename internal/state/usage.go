package state

import (
	"encoding/binary"
)

// Usage is usage.lua: it reads counts, or forgets them. Errors are as of [Settle].
func Usage(c Call) (Reply, error) {
	return c.run(1, false, func(r *Reply) error {
		forget := c.extra == 1
		if forget && len(c.Args) < 1+len(c.Values) {
			return errMalformed
		}
		r.Text = c.reply(Applied)
		for i, value := range c.Values {
			if forget && string(value) != c.Args[1+i] {
				return ended(c.reply(NotApplied))
			}
			if !forget {
				r.Text = append(AppendUint(r.Text, sizeSize, len(value)), value...)
			}
		}
		for i := 0; forget && i < len(c.Values); i++ {
			r.Writes = append(r.Writes, Write{Key: i})
		}
		return nil
	})
}

const sizeSize = 4

// ReadValue reads the first value of what [Usage] replies, and returns what follows it.
func ReadValue(text string) (value, rest string, ok bool) {
	if len(text) < sizeSize {
		return "", "", false
	}
	size := int(ReadUint(text, sizeSize))
	if text = text[sizeSize:]; size > len(text) {
		return "", "", false
	}
	return text[:size], text[size:], true
}

// Minutes is how many minutes a count has.
const Minutes = minutes

// ReadCount reads what is stored of a count: its mark, and what was charged and given back in each minute. It returns false if
// it is none.
func ReadCount(stored string) (mark uint64, each [Minutes]CountNumbers, ok bool) {
	if len(stored) < MarkSize || stored[0] != CountVersion {
		return 0, each, false
	}
	b := extended([]byte(stored), countNames)
	for i := range each {
		for j := range 2 {
			at := i*countSize + j*countNumber
			each[i].Charged[j] = min(ReadUint(b[countRows+at:], countNumber), MaxExact)
			each[i].Back[j] = min(ReadUint(b[countBack+at:], countNumber), MaxExact)
		}
	}
	return binary.BigEndian.Uint64(b), each, true
}

// Name is a name that a count lists.
type Name struct {
	Kind byte
	Name string
}

// ReadNames returns the names that the first count of an hour lists. Full says that others may have found no room.
func ReadNames(stored string) (names []Name, full bool) {
	full = len(stored) > MaxCount-nameHead-MaxCountName
	for text := stored[min(len(stored), countNames):]; len(text) >= nameHead; {
		size := int(ReadUint(text[1:], nameHead-1))
		if size > len(text)-nameHead {
			break
		}
		names = append(names, Name{text[0], text[nameHead : nameHead+size]})
		text = text[nameHead+size:]
	}
	return names, full
}

// CountNames is where the names begin in the first count of an hour, and MaxFirstName how long the first of them is at most, with its head.
const (
	CountNames   = countNames
	MaxFirstName = nameHead + MaxCountName
)

// FirstTenant returns the name of the tenant in what stands at [CountNames] of the first count of an hour: it is listed there, before any other,
// if its key does not tell it.
func FirstTenant(text string) (name string, ok bool) {
	if len(text) < nameHead || text[0] != CountTenant {
		return "", false
	}
	size := int(ReadUint(text[1:], nameHead-1))
	if size > min(len(text)-nameHead, MaxCountName) {
		return "", false
	}
	return text[nameHead : nameHead+size], true
}
