package state

import (
	"fmt"
	"math"
)

// Forever is the expiry of what is never gone.
const Forever = math.MaxInt64

// Override is override.lua: it reads or changes the override records of a tenant. Errors are as of [Settle].
func Override(c Call) (Reply, error) {
	return c.run(4, false, func(r *Reply) error {
		next, id, record, records := c.Args[1], c.Args[2], c.Args[3], string(c.Values[0])
		clears := next != "" && id == ""
		if records != "" && records[0] != OverridesVersion && !clears || record != "" && len(record) < DateSize {
			return fmt.Errorf("%w: override records", errMalformed)
		}
		r.Text = append(c.reply(Applied), records...)
		if next == "" {
			return nil
		}
		left, expires := overrides{text: []byte(next)}, int64(0)
		if record != "" {
			if expires = ReadUint(record, DateSize); expires > 0 && expires <= c.Now {
				return ended(c.reply(Expired))
			}
		}
		if !clears {
			if err := left.keep(records, id, c.Now); err != nil {
				return err
			}
		}
		if record != "" {
			b := append(AppendUint(nil, lengthOfText, len(id)), id...)
			b = AppendUint(append(b, record[:DateSize]...), DateSize, c.Now)
			left.add(string(b)+record[DateSize:], expires)
			if int64(left.n) > c.extra || len(left.text) > MaxOverrideBytes {
				return ended(c.reply(NotApplied))
			}
		}
		r.Writes = append(r.Writes, left.write(c.Now))
		return nil
	})
}

// ForgetExpired leaves of override records those that hold, under another generation. It reports whether any has
// expired, so that there is anything to write.
func ForgetExpired(records []byte, next string, now int64) (w Write, expired bool) {
	left := overrides{text: []byte(next)}
	if left.keep(string(records), "", now) != nil || len(left.text) == len(records) {
		return Write{}, false
	}
	return left.write(now), true
}

// lengthOfText is the size of the length of a record, or of its identity.
const lengthOfText = 2

// overrides are the records after a change.
type overrides struct {
	text []byte
	n    int
	// last is when the last one has expired.
	last int64
}

// CountOverrides returns how many override records there are, of those that are stored.
func CountOverrides(records []byte) int64 {
	all := overrides{}
	// What cannot be read counts up to there.
	_ = all.keep(string(records), "", 0)
	return int64(all.n)
}

func (o *overrides) write(now int64) (w Write) {
	if o.last > now {
		w.Value, w.Expiry = o.text, o.last
	}
	return w
}

func (o *overrides) add(record string, expires int64) {
	if expires == 0 {
		expires = Forever
	}
	o.text = append(AppendUint(o.text, lengthOfText, len(record)), record...)
	o.n, o.last = o.n+1, max(o.last, expires)
}

// keep adds the records that hold, but for one.
func (o *overrides) keep(records, id string, now int64) error {
	for rest := records[min(GenerationSize, len(records)):]; rest != ""; {
		record, after, ok := cutText(rest)
		is, body, known := cutText(record)
		if !ok || !known || len(body) < DateSize {
			return fmt.Errorf("%w: an override record", errMalformed)
		}
		if expires := ReadUint(body, DateSize); is != id && (expires == 0 || expires > now) {
			o.add(record, expires)
		}
		rest = after
	}
	return nil
}

// cutText cuts a text after its length.
func cutText(s string) (text, after string, ok bool) {
	if len(s) < lengthOfText || len(s) < lengthOfText+int(ReadUint(s, lengthOfText)) {
		return "", "", false
	}
	s, n := s[lengthOfText:], int(ReadUint(s, lengthOfText))
	return s[:n], s[n:], true
}
