package kafkastream_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/kafkastream"
	"github.com/gqlgen-ratelimit/ratelimit/contrib/kafkastream/internal/kfaketest"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
)

var (
	refusals = flag.Int("refusals", 5000, "how many refusals a flood has")
	quiet    = slog.New(slog.NewTextHandler(io.Discard, nil))
	// program is a Kafka, built once.
	program string
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	folder, err := os.MkdirTemp("", "kafkastream")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if program, err = kfaketest.Build(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// launch starts a Kafka, which ends with its test.
func launch(t *testing.T) *kfaketest.Cluster {
	t.Helper()
	cluster, err := kfaketest.Launch(program, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(cluster.Kill)
	return cluster
}

func open(t *testing.T, cfg kafkastream.Config) *kafkastream.Sink {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	sink, err := kafkastream.New(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = sink.Close() })
	return sink
}

// dial returns a client for the test itself.
func dial(t testing.TB, addrs []string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(addrs...))...)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

// topicsOf are the topics of a Kafka with the number of their partitions.
func topicsOf(ctx context.Context, client *kgo.Client) (map[string]int, error) {
	request := kmsg.NewPtrMetadataRequest()
	response, err := request.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	topics := map[string]int{}
	for _, topic := range response.Topics {
		topics[*topic.Topic] = len(topic.Partitions)
	}
	return topics, nil
}

// ends are the offsets of what comes next in each partition of a topic.
func ends(ctx context.Context, client *kgo.Client, topic string, partitions int) (all int64, err error) {
	for p := range partitions {
		request := kmsg.NewPtrListOffsetsRequest()
		request.ReplicaID = -1
		wanted := kmsg.NewListOffsetsRequestTopic()
		wanted.Topic = topic
		partition := kmsg.NewListOffsetsRequestTopicPartition()
		partition.Partition, partition.Timestamp, partition.CurrentLeaderEpoch = int32(p), -1, -1
		wanted.Partitions = append(wanted.Partitions, partition)
		request.Topics = append(request.Topics, wanted)
		response, err := request.RequestWith(ctx, client)
		if err != nil {
			return 0, err
		}
		all += response.Topics[0].Partitions[0].Offset
	}
	return all, nil
}

// read returns all events of all topics, those of each partition in their order.
func read(addrs []string) (all []stream.Envelope, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(addrs...))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	topics, err := topicsOf(ctx, client)
	if err != nil || len(topics) == 0 {
		return nil, err
	}
	want := int64(0)
	var names []string
	for topic, partitions := range topics {
		n, err := ends(ctx, client, topic, partitions)
		if err != nil {
			return nil, err
		}
		want += n
		names = append(names, topic)
	}
	client.AddConsumeTopics(names...)
	for int64(len(all)) < want {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		for _, r := range fetches.Records() {
			e, err := kafkastream.Decode(r)
			if err != nil {
				return nil, err
			}
			all = append(all, e)
		}
	}
	return all, nil
}
