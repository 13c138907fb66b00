package doctor

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/lua"
)

const (
	// samples is how many calls are timed.
	samples = 20
	// mostApart is how far a clock may be from that of this machine.
	mostApart = time.Second
)

// latency times calls that do nothing, and compares the clocks by the fastest.
func (n *node) latency(ctx context.Context) {
	late := lateNumbers()
	took := make([]time.Duration, 0, samples)
	var apart time.Duration
	for range samples {
		before, began := n.exam.config.Clock(), time.Now()
		cmd, err := n.do(ctx, "evalsha", lua.Load().Take.SHA, 0, late)
		elapsed := time.Since(began)
		if n.silent(err) || err != nil {
			return
		}
		text, _ := cmd.Text()
		if len(text) != lateReply {
			return
		}
		if len(took) == 0 || elapsed < slices.Min(took) {
			server := int64(binary.BigEndian.Uint64([]byte("\x00\x00" + text[1:])))
			apart = time.UnixMilli(server).Sub(before.Add(elapsed / 2))
			// Half the call, and the rest of a millisecond, can be on either side.
			if unsure := elapsed/2 + time.Millisecond; apart.Abs() <= unsure {
				apart = 0
			}
		}
		took = append(took, elapsed)
	}
	n.clock(apart)
	n.slow(took)
}

// clock looks for a clock that is wrong.
func (n *node) clock(apart time.Duration) {
	if apart.Abs() <= mostApart {
		return
	}
	direction := "ahead of"
	if apart < 0 {
		direction = "behind"
	}
	n.add(Warning, "clock-apart", fmt.Sprintf("the clock is %v %s that of this machine", apart.Abs().Round(time.Millisecond), direction),
		"budgets go by the clock of Redis: days and hours of calendars begin as much too early or too late, and the first call of a process is sent twice; "+
			"after a failover to a node with another clock budgets refill as much too early or late", "let both machines keep their clocks by NTP")
}

// slow looks for answers that come too late.
func (n *node) slow(took []time.Duration) {
	slices.Sort(took)
	median, longest, timeout := took[len(took)/2], took[len(took)-1], n.exam.config.Timeout
	if median <= timeout/2 && longest <= timeout {
		return
	}
	severity := Warning
	if median > timeout {
		severity = Error
	}
	n.add(severity, "slow", fmt.Sprintf("%d calls took %v in the median and %v at most, with a timeout of %v",
		len(took), median.Round(time.Microsecond), longest.Round(time.Microsecond), timeout),
		"calls that do not end in time are decided by the fail mode of their limits",
		"put the limiter near its Redis, look for what keeps the server busy (SLOWLOG), or raise RedisConfig.Timeout and with it redisclient.Config.SocketTimeout")
}
