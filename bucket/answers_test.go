package bucket_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
	"github.com/gqlgen-ratelimit/ratelimit/internal/redistest"
)

func newAnswers(t *testing.T, client redis.UniversalClient, namespace string) idempotency.AnswerStore {
	t.Helper()
	answers, err := bucket.NewRedisAnswers(bucket.RedisConfig{Client: client, Namespace: namespace, Timeout: patience})
	require.NoError(t, err)
	return answers
}

func TestAnswersComeBackByteForByteFromAServerAndFromACluster(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]redis.UniversalClient{
		"server":  patientClient(t, redistest.Start(t).Addr),
		"cluster": patientClusterClient(t, redistest.StartCluster(t).Addrs),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			answers, others := newAnswers(t, client, "a"), newAnswers(t, client, "b")
			for name, answer := range map[string]string{"some": "{\"data\":\x00\xff}", "empty": "", "large": strings.Repeat("x", 1<<20)} {
				require.NoError(t, answers.Put(ctx, name, []byte(answer), time.Minute))
				got, err := answers.Get(ctx, name)
				require.NoError(t, err)
				require.Equal(t, answer, string(got))
				_, err = others.Get(ctx, name)
				require.ErrorIs(t, err, idempotency.ErrNoAnswer, "another namespace")
				life, err := client.PTTL(ctx, "rl:a:a:"+name).Result()
				require.NoError(t, err)
				require.Positive(t, life)
				require.LessOrEqual(t, life, time.Minute)
			}
		})
	}
}

func TestAnswersTellAnAnswerThatIsMissingFromAServerThatIsAway(t *testing.T) {
	t.Parallel()
	ctx, server := context.Background(), redistest.Start(t)
	answers := newAnswers(t, patientClient(t, server.Addr), "")
	_, err := answers.Get(ctx, "none")
	require.ErrorIs(t, err, idempotency.ErrNoAnswer)
	server.Kill()
	_, err = answers.Get(ctx, "none")
	require.NotErrorIs(t, err, idempotency.ErrNoAnswer)
	require.Error(t, err)
	require.Error(t, answers.Put(ctx, "some", []byte("x"), time.Minute))
}

func TestAnswersWithAWrongNameOrLifeAreRefused(t *testing.T) {
	t.Parallel()
	ctx, answers := context.Background(), newAnswers(t, patientClient(t, "127.0.0.1:1"), "")
	for _, name := range []string{"", "a:b", "a{b}", strings.Repeat("a", 65)} {
		require.ErrorIs(t, answers.Put(ctx, name, nil, time.Minute), bucket.ErrInvalid, name)
		_, err := answers.Get(ctx, name)
		require.ErrorIs(t, err, bucket.ErrInvalid, name)
	}
	require.ErrorIs(t, answers.Put(ctx, "a", nil, -1), bucket.ErrInvalid)
	_, err := bucket.NewRedisAnswers(bucket.RedisConfig{})
	require.ErrorContains(t, err, "Client is nil")
}
