package kafkastream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
)

// Names of headers, as the protocol binding of CloudEvents for Kafka has them.
const (
	attributePrefix = "ce_"
	contentType     = "content-type"
)

// recordOf returns an envelope as it is written. Its time as a record is that of writing, by which brokers keep it.
func recordOf(e *stream.Envelope) *kgo.Record {
	r := &kgo.Record{Topic: e.Topic, Key: []byte(e.Key()), Value: e.Data}
	for name, value := range e.Attributes() {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: attributePrefix + name, Value: []byte(value)})
	}
	r.Headers = append(r.Headers, kgo.RecordHeader{Key: contentType, Value: []byte(stream.ContentType)})
	return r
}

// Decode reads a record as it was written. The error is that of one which somebody else has written.
func Decode(r *kgo.Record) (stream.Envelope, error) {
	e := stream.Envelope{Topic: r.Topic, Data: r.Value}
	version := false
	var errs []error
	for _, header := range r.Headers {
		if name, ok := strings.CutPrefix(header.Key, attributePrefix); ok {
			version = version || name == "specversion"
			errs = append(errs, e.SetAttribute(name, string(header.Value)))
		}
	}
	if !version || e.ID == "" || !json.Valid(e.Data) {
		errs = append(errs, errors.New("it is no CloudEvent with data of JSON"))
	}
	if err := errors.Join(errs...); err != nil {
		return stream.Envelope{}, fmt.Errorf("kafkastream: the record %d of partition %d of %.200s: %w", r.Offset, r.Partition, r.Topic, err)
	}
	return e, nil
}

// ensure makes a topic that is not there. It tries once more with each batch until somebody has said that the topic is there, or that this client may make none:
// what is sent in the meantime waits for the topic.
func (s *Sink) ensure(ctx context.Context, topic string) {
	s.making.Lock()
	defer s.making.Unlock()
	if s.cfg.Topics.Leave || s.made[topic] {
		return
	}
	err := s.create(ctx, topic)
	switch {
	case err == nil || errors.Is(err, kerr.TopicAlreadyExists):
		s.remember(topic)
	case errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed) || errors.Is(err, kerr.PolicyViolation) ||
		errors.Is(err, kerr.InvalidReplicationFactor) || errors.Is(err, kerr.InvalidPartitions) || errors.Is(err, kerr.InvalidConfig):
		s.remember(topic)
		s.cfg.Logger.WarnContext(ctx, "ratelimit: a topic of events cannot be made: somebody else has to, or its events are dropped when they are too old",
			slog.String("topic", topic), slog.Any("error", err))
	default:
	}
}

// remember notes that a topic is not made any more. Those of a queue are three; whoever sends to any number has each asked for again at times.
func (s *Sink) remember(topic string) {
	const most = 1000
	if len(s.made) >= most {
		clear(s.made)
	}
	s.made[topic] = true
}

func (s *Sink) create(ctx context.Context, topic string) error {
	want := kmsg.NewCreateTopicsRequestTopic()
	want.Topic, want.NumPartitions, want.ReplicationFactor = topic, -1, -1
	if s.cfg.Topics.Partitions > 0 {
		want.NumPartitions = s.cfg.Topics.Partitions
	}
	if s.cfg.Topics.Replicas > 0 {
		want.ReplicationFactor = s.cfg.Topics.Replicas
	}
	retention := kmsg.NewCreateTopicsRequestTopicConfig()
	ms := strconv.FormatInt(s.cfg.Topics.Retention.Milliseconds(), 10)
	retention.Name, retention.Value = "retention.ms", &ms
	want.Configs = append(want.Configs, retention)
	request := kmsg.NewPtrCreateTopicsRequest()
	request.TimeoutMillis = int32(produceTimeout.Milliseconds())
	request.Topics = append(request.Topics, want)
	response, err := request.RequestWith(ctx, s.client)
	if err != nil {
		return err
	}
	if len(response.Topics) != 1 {
		return errors.New("kafkastream: the broker says nothing of the topic")
	}
	return kerr.ErrorForCode(response.Topics[0].ErrorCode)
}
