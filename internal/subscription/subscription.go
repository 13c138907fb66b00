// Package subscription hears hints of a Redis: messages that only say that there may be something to read.
package subscription

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// pingEvery is for how long a subscription is silent before it is asked whether it stands.
const pingEvery = 5 * time.Second

// ErrSilent says that a subscription has not answered.
var ErrSilent = errors.New("the subscription is silent")

// Listen subscribes to a channel, and wakes when it stands and at each message, until it does not stand any more or the context ends. A
// connection that has broken without a word is noticed within some seconds.
func Listen(ctx context.Context, client redis.UniversalClient, channel string, wake func()) error {
	subscription := client.Subscribe(ctx, channel)
	defer func() { _ = subscription.Close() }()
	// A read does not end with its context.
	stop := context.AfterFunc(ctx, func() { _ = subscription.Close() })
	defer stop()
	silent := false
	for ctx.Err() == nil {
		message, err := subscription.ReceiveTimeout(ctx, pingEvery)
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
			if silent {
				return ErrSilent
			}
			silent = true
			if err := subscription.Ping(ctx); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		silent = false
		if _, pong := message.(*redis.Pong); !pong {
			wake()
		}
	}
	return ctx.Err()
}
