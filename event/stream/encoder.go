package stream

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"github.com/gqlgen-ratelimit/ratelimit/event"
)

// Encoder makes envelopes of the events of one run of an instance. It is made by [NewEncoder], for one goroutine.
type Encoder struct {
	source, boot string
	topics       [topics]string
	sequences    [topics]uint64
}

// NewEncoder returns an encoder. The namespace and the instance stand in the source of each envelope, as in [Config]. Topics that are empty
// have their default names.
func NewEncoder(namespace, instance string, names Topics) *Encoder {
	cfg := Config{Namespace: namespace, Instance: instance, Topics: names}.withDefaults()
	return cfg.encoder()
}

// encoder returns the encoder of a queue.
func (c *Config) encoder() *Encoder {
	var boot [8]byte
	// It never fails.
	_, _ = rand.Read(boot[:])
	return &Encoder{
		source: c.source(), boot: hex.EncodeToString(boot[:]),
		topics: [topics]string{c.Topics.Denials, c.Topics.Thresholds, c.Topics.PolicyUpdates},
	}
}

// Goes reports whether an event goes to a topic, and returns the tenant that it is about, empty for none.
func Goes(e event.Event) (tenant string, ok bool) {
	k, ok := kindOf(e)
	return k.tenant, ok
}

// Encode returns the envelope of an event with the next sequence of its topic. It is false for an event that goes to no topic, and for one
// that is no JSON, as one with a share that is no number.
func (e *Encoder) Encode(of event.Event) (Envelope, bool) {
	k, ok := kindOf(of)
	if !ok {
		return Envelope{}, false
	}
	e.sequences[k.topic]++
	envelope, err := e.envelope(e.sequences[k.topic], of, &k)
	return envelope, err == nil
}

// envelope returns an event as it leaves. The error is that of an event which is no JSON.
func (e *Encoder) envelope(sequence uint64, of event.Event, k *kind) (Envelope, error) {
	data, err := json.Marshal(of)
	if err != nil {
		return Envelope{}, err
	}
	id := k.id
	if id == "" {
		id = e.boot + "-" + strconv.Itoa(int(k.topic)) + "-" + strconv.FormatUint(sequence, 10)
	}
	return Envelope{
		ID: id, Source: e.source, Type: k.name, Subject: Subject(k.tenant), Time: k.at, Sequence: sequence, Data: data, Topic: e.topics[k.topic],
	}, nil
}
