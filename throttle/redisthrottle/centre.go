package redisthrottle

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/internal/redisplace"
	"github.com/gqlgen-ratelimit/ratelimit/throttle"
)

//go:embed exchange.lua
var exchangeSource string

var exchangeScript = redis.NewScript(exchangeSource)

// Config says where the share is. The zero value is the default in each field but Client. Every mistake in it is reported, all at
// once, by [New].
type Config struct {
	// Client is that of the Redis. It is required, and the caller's to close. redisclient.Open makes one whose calls end when
	// their deadline does.
	Client redis.UniversalClient
	// Namespace is that of bucket.RedisConfig. Empty means main.
	Namespace string
}

// ErrAnswer says that the Redis has answered something that is no share.
var ErrAnswer = errors.New("redisthrottle: the answer is not a share")

// Centre is a throttle.Centre. It is made by [New] and safe for concurrent use.
type Centre struct {
	client redis.UniversalClient
	key    string
	script *redis.Script
	// more is what the script is given besides, for tests.
	more func() []any
}

var _ throttle.Centre = (*Centre)(nil)

// New returns the centre of a namespace. Nothing is connected for that.
func New(cfg Config) (*Centre, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return &Centre{client: cfg.Client, key: cfg.key(), script: exchangeScript}, nil
}

// complete puts the defaults in, and returns everything that is wrong.
func (c *Config) complete() error {
	place := redisplace.Place(*c)
	err := place.Complete("redisthrottle")
	*c = Config(place)
	return err
}

func (c *Config) key() string { return "rl:" + c.Namespace + ":throttle" }

// Exchange implements throttle.Centre. The error matches throttle.ErrReport, throttle.ErrFull, [ErrAnswer], or says what is wrong with the
// Redis.
func (c *Centre) Exchange(ctx context.Context, report throttle.Report) (throttle.Share, error) {
	if err := report.Check(); err != nil {
		return throttle.Share{}, err
	}
	fresh := "0"
	if report.Fresh {
		fresh = "1"
	}
	numbers := append([]float64{report.Pressure, report.Weight, report.Admitted, report.Completed}, report.Offered[:]...)
	words := make([]string, 0, len(numbers)+throttle.Orders)
	for _, n := range append(numbers, report.Sheddable[:]...) {
		words = append(words, strconv.FormatFloat(n, 'g', 17, 64))
	}
	args := []any{report.Instance, fresh, strings.Join(words, " ")}
	if c.more != nil {
		args = append(args, c.more()...)
	}
	answer, err := c.script.Run(ctx, c.client, []string{c.key}, args...).StringSlice()
	switch {
	case err != nil:
		return throttle.Share{}, fmt.Errorf("redisthrottle: %w", err)
	case len(answer) == 0:
		return throttle.Share{}, throttle.ErrFull
	default:
		return shareOf(answer[0])
	}
}

// shareOf reads an answer.
func shareOf(text string) (throttle.Share, error) {
	const before = 5
	words := strings.Fields(text)
	if len(words) != before+throttle.Orders {
		return throttle.Share{}, fmt.Errorf("%w: it has %d numbers", ErrAnswer, len(words))
	}
	var numbers [before + throttle.Orders]float64
	for i, word := range words {
		n, err := strconv.ParseFloat(word, 64)
		// What somebody else has written there must not shed more than everything.
		if err != nil || !(n >= 0) {
			return throttle.Share{}, fmt.Errorf("%w: a number is %.40q", ErrAnswer, word)
		}
		numbers[i] = n
	}
	share := throttle.Share{
		Shed: min(1, numbers[0]), Pressure: numbers[1], Stale: numbers[4] != 0,
		Instances: int(min(numbers[2], throttle.MaxInstances)), Fresh: int(min(numbers[3], throttle.MaxInstances)),
	}
	for i := range share.Room {
		share.Room[i] = min(1, numbers[before+i])
	}
	return share, nil
}

// Leave implements throttle.Centre.
func (c *Centre) Leave(ctx context.Context, instance string) error {
	if err := c.client.HDel(ctx, c.key, "i"+instance).Err(); err != nil {
		return fmt.Errorf("redisthrottle: %w", err)
	}
	return nil
}

// ACLRules returns the least rights in Redis with which everything in this package works, as rules for ACL SETUSER that are added to those
// of bucket.ACLRules. An empty namespace means main. The error is that of one that [New] refuses.
func ACLRules(namespace string) ([]string, error) {
	place := redisplace.Place{Namespace: namespace}
	if err := place.CompleteNamespace("redisthrottle"); err != nil {
		return nil, err
	}
	cfg := Config(place)
	return redisplace.Rules([]string{"~" + cfg.key()}, "evalsha", "eval", "time", "hget", "hgetall", "hexists", "hlen", "hset", "hdel", "pexpire"), nil
}
