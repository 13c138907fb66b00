package redisthrottle

import (
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// SetClock has the script take the time from an argument. The rest of its text is the same.
func SetClock(c *Centre, clock func() time.Time) error {
	const old = "local clock = redis.call('TIME')"
	if strings.Count(exchangeSource, old) != 1 {
		return fmt.Errorf("%q is not once in the script", old)
	}
	c.script = redis.NewScript(strings.Replace(exchangeSource, old,
		"local clock = {math.floor(ARGV[#ARGV] / 1000), ARGV[#ARGV] % 1000 * 1000}", 1))
	c.more = func() []any { return []any{clock().UnixMilli()} }
	return nil
}
