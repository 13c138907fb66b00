package bucket

// mostDoubts is how many receipts of a tenant a process remembers whose shard has not answered what it put back.
const mostDoubts = 1024

// shardDoubts are the receipts of a tenant of which nobody knows whether the shard has put back what was not needed, and since when that is, by the clock of this process in
// microseconds. What was used less is still to be noted of them, whatever the shard says when it is asked again: it has put back before, or does so then. The zero value has none.
type shardDoubts map[[16]byte]int64

// add remembers a receipt. Where there are too many it forgets those that are not settled any more.
func (d *shardDoubts) add(id [16]byte, now int64) {
	if *d == nil {
		*d = shardDoubts{}
	}
	if len(*d) >= mostDoubts {
		for other, since := range *d {
			if now-since > maxReceiptAge.Microseconds() {
				delete(*d, other)
			}
		}
	}
	if len(*d) < mostDoubts {
		(*d)[id] = now
	}
}

// take forgets a receipt, and reports whether it was remembered.
func (d *shardDoubts) take(id [16]byte) bool {
	_, is := (*d)[id]
	delete(*d, id)
	return is
}
