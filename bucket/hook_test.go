package bucket_test

import (
	"context"
	"net"

	"github.com/redis/go-redis/v9"
)

// replies is a hook that is told each reply that is a string.
type replies func(text string)

func (replies) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (r replies) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if reply, ok := cmd.(interface{ Text() (string, error) }); ok && err == nil {
			if text, err := reply.Text(); err == nil {
				r(text)
			}
		}
		return err
	}
}

func (replies) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
