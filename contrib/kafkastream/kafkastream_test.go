package kafkastream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/kafkastream"
	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
	"github.com/gqlgen-ratelimit/ratelimit/event/streamtest"
)

func harness(t *testing.T) (streamtest.Harness, func(string)) {
	t.Helper()
	cluster := launch(t)
	ok := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	return streamtest.Harness{
		Sink:   open(t, kafkastream.Config{Brokers: cluster.Addrs, MaxEvent: 64 << 10}),
		Read:   func() ([]stream.Envelope, error) { return read(cluster.Addrs) },
		Freeze: func() { ok(cluster.Freeze()) },
		Thaw:   func() { ok(cluster.Thaw()) },
		Restart: func() error {
			return cluster.Restart()
		},
		TooLarge: 64 << 10,
	}, func(command string) { ok(cluster.Do(command)) }
}

func TestAKafkaIsABroker(t *testing.T) {
	t.Parallel()
	streamtest.Run(t, func(t *testing.T) streamtest.Harness {
		t.Helper()
		h, _ := harness(t)
		return h
	})
}

func TestAFloodOfRefusalsThroughAKafkaThatBreaksIsThereOrCounted(t *testing.T) {
	t.Parallel()
	h, do := harness(t)
	kill := func() {
		if err := h.Restart(); err != nil {
			t.Error(err)
		}
	}
	freeze := func() {
		h.Freeze()
		<-time.After(1500 * time.Millisecond) // longer than a batch may take
		h.Thaw()
	}
	drop, move, late := func() { do("drop") }, func() { do("move") }, func() { do("late") }
	t.Log(streamtest.Flood(t, h, *refusals, drop, move, late, kill, freeze, move, drop, late, freeze, move, kill))
}

// configOf returns a configuration of a topic.
func configOf(t *testing.T, client *kgo.Client, topic, name string) string {
	t.Helper()
	request := kmsg.NewPtrDescribeConfigsRequest()
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	request.Resources = append(request.Resources, resource)
	response, err := request.RequestWith(t.Context(), client)
	require.NoError(t, err)
	for _, config := range response.Resources[0].Configs {
		if config.Name == name {
			return *config.Value
		}
	}
	return ""
}

func TestATopicThatIsNotThereIsMadeForSevenDays(t *testing.T) {
	t.Parallel()
	cluster := launch(t)
	client := dial(t, cluster.Addrs)
	require.Nil(t, open(t, kafkastream.Config{Brokers: cluster.Addrs}).Send(t.Context(), []stream.Envelope{streamtest.Envelope("acme", 0)}))
	require.Equal(t, "604800000", configOf(t, client, "ratelimit.denials", "retention.ms"))

	other := streamtest.Envelope("acme", 1)
	other.Topic = "other"
	sink := open(t, kafkastream.Config{Brokers: cluster.Addrs, Topics: kafkastream.TopicConfig{Partitions: 7, Replicas: 1, Retention: time.Hour}})
	require.Nil(t, sink.Send(t.Context(), []stream.Envelope{other, streamtest.Envelope("acme", 2)}))
	require.Equal(t, "3600000", configOf(t, client, "other", "retention.ms"))
	require.Equal(t, "604800000", configOf(t, client, "ratelimit.denials", "retention.ms"), "it was there")
	topics, err := topicsOf(t.Context(), client)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"ratelimit.denials": 4, "other": 7}, topics)
}

func TestATopicThatCannotBeMadeIsSaidOnceAndItsEventsWait(t *testing.T) {
	t.Parallel()
	cluster := launch(t)
	client := dial(t, cluster.Addrs)
	var log bytes.Buffer
	said := func() int { return strings.Count(log.String(), "a topic of events cannot be made") }
	impossible := kafkastream.TopicConfig{Replicas: 100}
	for name, cfg := range map[string]kafkastream.TopicConfig{"impossible": impossible, "left": {Leave: true}} {
		sink := open(t, kafkastream.Config{Brokers: cluster.Addrs, Topics: cfg, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		e := streamtest.Envelope("acme", 0)
		e.Topic = name
		send := func() {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			require.NotNil(t, sink.Send(ctx, []stream.Envelope{e}))
		}
		// A broker of a busy machine does not answer in time, and is asked with each batch until it has.
		for began := time.Now(); name == "impossible" && said() == 0 && time.Since(began) < time.Minute; {
			send()
		}
		for range 2 {
			send()
		}
		request := kmsg.NewPtrCreateTopicsRequest()
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 1, 1
		request.Topics = append(request.Topics, topic)
		_, err := request.RequestWith(t.Context(), client)
		require.NoError(t, err)
		require.Eventually(t, func() bool { return sink.Send(t.Context(), []stream.Envelope{e}) == nil }, time.Minute, time.Millisecond)
	}
	require.Equal(t, 1, said(), log.String())
}

// TestOneThatBrokersFindTooLargeCostsNoOther has a topic that takes less than the sink does: its brokers refuse whole batches.
func TestOneThatBrokersFindTooLargeCostsNoOther(t *testing.T) {
	t.Parallel()
	cluster := launch(t)
	client := dial(t, cluster.Addrs)
	request := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "ratelimit.denials", 1, 1
	most := "20000"
	config := kmsg.NewCreateTopicsRequestTopicConfig()
	config.Name, config.Value = "max.message.bytes", &most
	topic.Configs = append(topic.Configs, config)
	request.Topics = append(request.Topics, topic)
	_, err := request.RequestWith(t.Context(), client)
	require.NoError(t, err)
	sink := open(t, kafkastream.Config{Brokers: cluster.Addrs, Options: []kgo.Opt{kgo.ProducerBatchCompression(kgo.NoCompression())}})
	var batch []stream.Envelope
	for i := range 5 {
		e := streamtest.Envelope("acme", i)
		e.Data = json.RawMessage(`"` + strings.Repeat("x", 5000) + `"`)
		batch = append(batch, e)
	}
	batch[2].Data = json.RawMessage(`"` + strings.Repeat("x", 50_000) + `"`)
	errs := sink.Send(t.Context(), batch)
	require.Len(t, errs, 5)
	for i, err := range errs {
		if i == 2 {
			require.ErrorIs(t, err, stream.ErrTooLarge)
		} else {
			require.NoError(t, err)
		}
	}
	all, err := read(cluster.Addrs)
	require.NoError(t, err)
	require.Len(t, all, 4)
}

// TestKcatReadsATopic reads with a client that has nothing of franz-go: librdkafka's.
func TestKcatReadsATopic(t *testing.T) {
	t.Parallel()
	cluster := launch(t)
	sink := open(t, kafkastream.Config{Brokers: cluster.Addrs})
	require.Nil(t, sink.Send(t.Context(), []stream.Envelope{streamtest.Envelope("Zoë", 0), streamtest.Envelope("acme", 1), streamtest.Envelope("acme", 2)}))
	out, err := exec.CommandContext(t.Context(), "kcat", "-b", cluster.Addrs[0], "-t", "ratelimit.denials", "-C", "-o", "beginning", "-e", "-q",
		"-f", `%k|%h|%s\n`).Output()
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.ElementsMatch(t, []string{
		"Zoë|ce_specversion=1.0,ce_id=id-0,ce_source=ratelimit:main/web-1,ce_type=ratelimit.decision.refused.v1,ce_subject=Zoë," +
			`ce_time=2026-09-21T14:13:20Z,ce_sequence=00000000000000000001,content-type=application/json|{"n":0}`,
		"acme|ce_specversion=1.0,ce_id=id-1,ce_source=ratelimit:main/web-1,ce_type=ratelimit.decision.refused.v1,ce_subject=acme," +
			`ce_time=2026-09-21T14:13:20Z,ce_sequence=00000000000000000002,content-type=application/json|{"n":1}`,
		"acme|ce_specversion=1.0,ce_id=id-2,ce_source=ratelimit:main/web-1,ce_type=ratelimit.decision.refused.v1,ce_subject=acme," +
			`ce_time=2026-09-21T14:13:20Z,ce_sequence=00000000000000000003,content-type=application/json|{"n":2}`,
	}, lines)
}

func TestRecordsOfOthersAreNoEvents(t *testing.T) {
	t.Parallel()
	header := func(name, value string) kgo.RecordHeader { return kgo.RecordHeader{Key: name, Value: []byte(value)} }
	for _, r := range []*kgo.Record{
		{},
		{Headers: []kgo.RecordHeader{header("ce_id", "1")}, Value: []byte("{}")},
		{Headers: []kgo.RecordHeader{header("ce_specversion", "1.0")}, Value: []byte("{}")},
		{Headers: []kgo.RecordHeader{header("ce_specversion", "1.0"), header("ce_id", "1")}, Value: []byte("{")},
		{Headers: []kgo.RecordHeader{header("ce_specversion", "0.3"), header("ce_id", "1")}, Value: []byte("{}")},
	} {
		_, err := kafkastream.Decode(r)
		require.ErrorContains(t, err, "kafkastream: the record 0")
	}
}

func TestMistakesOfTheConfigurationAreReportedAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := kafkastream.New(kafkastream.Config{MaxEvent: 1, Topics: kafkastream.TopicConfig{Partitions: -1, Retention: 1}})
	for _, part := range []string{"Config.Brokers is empty", "Config.MaxEvent is 1", "Config.Topics has -1 partitions", "Config.Topics.Retention is 1ns"} {
		require.ErrorContains(t, err, part)
	}
}

func TestASinkThatIsClosedSendsNothing(t *testing.T) {
	t.Parallel()
	cluster := launch(t)
	sink := open(t, kafkastream.Config{Brokers: cluster.Addrs})
	require.NoError(t, sink.Close())
	require.NotNil(t, sink.Send(t.Context(), []stream.Envelope{streamtest.Envelope("acme", 0)}))
}
