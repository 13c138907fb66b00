package state

import "fmt"

// Swap is swap.lua: it tells what stands under keys, and puts something else there if that is what the caller knows. Errors are as of [Settle].
func Swap(c Call) (Reply, error) {
	return c.run(1+2*len(c.Values), false, func(r *Reply) error {
		same := true
		var values []byte
		var writes []Write
		for i, value := range c.Values {
			known, next := c.Args[1+2*i], c.Args[2+2*i]
			stands := "-"
			if value != nil {
				stands = "+" + string(value)
				values = AppendUint(values, swapSize, len(value)+1)
			} else {
				values = AppendUint(values, swapSize, 0)
			}
			values = append(values, value...)
			same = same && (known == "" || known == stands)
			switch {
			case next == "":
			case next == "-":
				writes = append(writes, Write{Key: i})
			case next[0] != '+' || len(next) < 1+DateSize:
				return fmt.Errorf("%w: what is to stand under a key", errMalformed)
			default:
				w := Write{Key: i, Value: []byte(next[1+DateSize:]), Expiry: ReadUint(next[1:], DateSize)}
				if w.Expiry == 0 {
					w.Expiry = Forever
				}
				writes = append(writes, w)
			}
		}
		outcome := NotApplied
		if same {
			outcome = Applied
			if c.extra == 1 {
				r.Writes = writes
			}
		}
		r.Text = append(c.reply(outcome), values...)
		return nil
	})
}

// swapSize is the size of the length of a value in what a swap tells.
const swapSize = 4

// AppendSwap appends to the arguments of a swap those of a key: what is known of it, and what is to stand there. Nil is nothing.
func AppendSwap(args []string, known, next []byte, expiry int64) []string {
	is, becomes := "-", "-"
	if known != nil {
		is = "+" + string(known)
	}
	if next != nil {
		becomes = string(append(AppendUint([]byte{'+'}, DateSize, expiry), next...))
	}
	return append(args, is, becomes)
}

// ReadSwap reads what stood under so many keys.
func ReadSwap(text string, keys int) (values [][]byte, ok bool) {
	for range keys {
		if len(text) < swapSize {
			return nil, false
		}
		size := ReadUint(text, swapSize)
		text = text[swapSize:]
		switch {
		case size == 0:
			values = append(values, nil)
		case int64(len(text)) < size-1:
			return nil, false
		default:
			values, text = append(values, []byte(text[:size-1])), text[size-1:]
		}
	}
	return values, text == ""
}
