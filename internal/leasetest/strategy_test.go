package leasetest_test

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
)

// strategy is what others do who count in each process, to compare with. Its bucket in Redis is one of points, by the clock of Redis.
type strategy struct {
	setting
	client redis.UniversalClient
	stop   chan struct{}
	ended  sync.WaitGroup

	mu sync.Mutex
	// level is what is known or held, at a time, spent what nobody has told Redis, and gap how long nothing is fetched after asked.
	level, spent float64
	at, asked    time.Time
	gap          time.Duration
	fetching     bool
}

const (
	// syncEvery is after how long who pays afterwards tells what was spent.
	syncEvery = 100 * time.Millisecond
	// fetchGap is how long nothing is fetched after nothing came.
	fetchGap = 5 * time.Millisecond
)

// central takes points of the bucket in Redis, as many as there are, or all that were spent already, and says what is left.
var central = redis.NewScript(`
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local stored = redis.call('HMGET', KEYS[1], 'level', 'at')
local capacity, refill, points = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local level = tonumber(stored[1] or capacity)
level = math.min(capacity, level + refill * math.max(0, now - tonumber(stored[2] or now)) / 1000000)
if ARGV[4] ~= 'spent' then
  points = math.max(0, math.min(points, math.floor(level)))
end
redis.call('HSET', KEYS[1], 'level', string.format('%.17g', level - points), 'at', string.format('%.17g', now))
return {points, math.floor(level - points)}
`)

func newStrategy(s setting, client redis.UniversalClient) *strategy {
	d := &strategy{setting: s, client: client, stop: make(chan struct{}), at: time.Now()}
	switch s.Kind {
	case static:
		d.level = float64(s.Capacity) / float64(s.Instances)
	case postPaid:
		d.level = float64(s.Capacity)
		d.ended.Go(d.sync)
	default:
	}
	return d
}

func (d *strategy) stats() bucket.LeaseStats { return bucket.LeaseStats{} }

func (d *strategy) end() {
	close(d.stop)
	d.ended.Wait()
}

// ask asks Redis for points.
func (d *strategy) ask(points float64, spent bool) (got, left float64, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), redisTimeout)
	defer cancel()
	word := "wanted"
	if spent {
		word = "spent"
	}
	reply, err := central.Run(ctx, d.client, []string{"{tenant}"}, d.Capacity, d.Refill, int64(points), word).Int64Slice()
	if err != nil || len(reply) != 2 {
		return 0, 0, false
	}
	return float64(reply[0]), float64(reply[1]), true
}

// sync tells from time to time what was spent.
func (d *strategy) sync() {
	ticks := time.NewTicker(syncEvery)
	defer ticks.Stop()
	for {
		select {
		case <-d.stop:
			return
		case <-ticks.C:
		}
		d.mu.Lock()
		spent := d.spent
		d.mu.Unlock()
		_, left, ok := d.ask(spent, true)
		if !ok {
			continue
		}
		d.mu.Lock()
		d.spent -= spent
		d.level, d.at = left-d.spent, time.Now()
		d.mu.Unlock()
	}
}

func (d *strategy) decide(_ string, cost int64) verdict {
	amount, now := float64(cost), time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Kind != prePaid {
		capacity, refill := float64(d.Capacity), float64(d.Refill)
		if d.Kind == static {
			capacity, refill = capacity/float64(d.Instances), refill/float64(d.Instances)
		}
		d.level, d.at = min(capacity, d.level+refill*now.Sub(d.at).Seconds()), now
	} else if d.level < amount {
		d.fetch(amount, now)
	}
	if d.level < amount {
		return refused
	}
	d.level -= amount
	d.spent += amount
	return admitted
}

// fetch brings a chunk, a fourth of what would be its share, unless one is under way. The lock is held, and not while it asks.
func (d *strategy) fetch(amount float64, now time.Time) {
	if d.fetching || now.Sub(d.asked) < d.gap {
		return
	}
	d.fetching = true
	d.mu.Unlock()
	got, _, _ := d.ask(max(amount, float64(d.Capacity)/float64(4*d.Instances)), false)
	d.mu.Lock()
	d.fetching, d.asked, d.gap = false, time.Now(), 0
	if d.level += got; d.level < amount {
		d.gap = fetchGap
	}
}
