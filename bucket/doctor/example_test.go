package doctor_test

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/gqlgen-ratelimit/ratelimit/bucket/doctor"
)

// What a client with the defaults of go-redis does to a limiter. Examine looks at the servers as well.
func ExampleClient() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true})
	defer func() { _ = client.Close() }()
	for _, finding := range doctor.Client(client) {
		fmt.Println(finding.Severity, finding.Code+":", finding.Seen)
	}
	// Output:
	// warning client-retries: MaxRetries is 3
	// warning long-dial-timeout: DialTimeout is 5s
	// warning dial-attempts: DialerRetries is 5
	// warning long-socket-timeout: ReadTimeout is 5s
	// warning long-socket-timeout: WriteTimeout is 5s
	// warning long-pool-timeout: PoolTimeout is 6s
	// warning maintenance-notifications: maintenance notifications are on
}

func ExampleExamine() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true})
	defer func() { _ = client.Close() }()
	findings, err := doctor.Examine(context.Background(), doctor.Config{Client: client})
	if err != nil {
		fmt.Println("the configuration is wrong:", err)
		return
	}
	for _, finding := range findings {
		if finding.Severity == doctor.Error {
			fmt.Println(finding.Node, finding.Code+":", finding.Remedy)
		}
	}
	// Output:
	// 127.0.0.1:1 unreachable: check address, network, TLS and that the server runs
}
