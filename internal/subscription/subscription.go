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
	return listen(ctx, client, channel, wake, pingEvery)
}

func listen(ctx context.Context, client redis.UniversalClient, channel string, wake func(), every time.Duration) error {
	// Connections of redisclient take what is not read before what was written has run out of time for a call that has
	// failed, and end. A subscription that is silent is none: what it writes has less time than what it reads.
	write := func(call func(context.Context) error) error {
		bounded, cancel := context.WithTimeout(ctx, every/2)
		defer cancel()
		return call(bounded)
	}
	var subscription *redis.PubSub
	_ = write(func(ctx context.Context) error { // Its error is that of the first read.
		subscription = client.Subscribe(ctx, channel)
		return nil
	})
	defer func() { _ = subscription.Close() }()
	// A read does not end with its context.
	stop := context.AfterFunc(ctx, func() { _ = subscription.Close() })
	defer stop()
	silent := false
	for ctx.Err() == nil {
		message, err := subscription.ReceiveTimeout(ctx, every)
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
			if silent {
				return ErrSilent
			}
			silent = true
			if err := write(func(ctx context.Context) error { return subscription.Ping(ctx) }); err != nil {
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
