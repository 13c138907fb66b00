package redisclient_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/event"
)

// The master behind Sentinels, by user and password. Nothing connects before the first call.
func ExampleOpen() {
	client, err := redisclient.Open("sentinel-1:26379", redisclient.Config{
		Addresses: []string{"sentinel-2:26379", "sentinel-3:26379"},
		Master:    "mymaster",
		Username:  "limiter", Password: "from the environment",
		Breaker: redisclient.BreakerConfig{Observer: event.NewLogger(slog.Default())},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close() }()
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Namespace: "shop-eu"})
	fmt.Println(store != nil, err)
	// Output: true <nil>
}

// A client of one's own: tokens of a cloud in the place of a password, and options that Open has no
// field for.
func ExampleAddBreaker() {
	options := &redis.ClusterOptions{
		Addrs:           []string{"clustercfg.example:6379"},
		ConnMaxLifetime: 10 * time.Minute,
		CredentialsProviderContext: func(context.Context) (username, password string, err error) {
			return "limiter", "a token", nil
		},
	}
	redisclient.Bound(options)
	client := redis.NewClusterClient(options)
	defer func() { _ = client.Close() }()
	fmt.Println(redisclient.AddBreaker(client, redisclient.BreakerConfig{Failures: 3}))
	// Output: <nil>
}
