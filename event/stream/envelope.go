package stream

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"
)

// Envelope is an event on its way: a CloudEvent of version 1.0, whose data is JSON. Its JSON form is that of the specification
// ("structured mode"); sinks write its attributes beside the data, as their broker has them ("binary mode").
type Envelope struct {
	// ID tells it from all others of its source, and is the same each time that it is sent: the id of a refusal where there is one. It is
	// printable ASCII.
	ID string
	// Source is the instance that it is from, as a URI: ratelimit:NAMESPACE/INSTANCE.
	Source string
	// Type says what data is, such as ratelimit.decision.refused.v1. Data of one type gets further fields, and loses none.
	Type string
	// Subject is the tenant, empty for what is about none. Characters that nobody would see stand in it as Go escapes them.
	Subject string
	// Time is when it happened, by the clock of the instance.
	Time time.Time
	// Sequence grows by one with each event of a run of an instance for one topic, from 1, also with those that are dropped before they
	// are sent. 0 means that there is none.
	Sequence uint64
	// Data is the event as JSON.
	Data json.RawMessage

	// Topic is where it goes. It is no attribute.
	Topic string
}

// Key is what brokers keep in order: the tenant, or the source of what is about none.
func (e *Envelope) Key() string {
	if e.Subject != "" {
		return e.Subject
	}
	return e.Source
}

// Size is about how many bytes it has on its way.
func (e *Envelope) Size() int {
	const names = 128
	return names + len(e.ID) + len(e.Source) + len(e.Type) + len(e.Subject) + len(e.Topic) + len(e.Data)
}

// ContentType is that of the data.
const ContentType = "application/json"

// Names of attributes.
const (
	attrVersion  = "specversion"
	attrID       = "id"
	attrSource   = "source"
	attrType     = "type"
	attrSubject  = "subject"
	attrTime     = "time"
	attrSequence = "sequence"
)

// sequenceDigits are as many as the largest sequence has, so that texts are ordered as numbers are.
const sequenceDigits = 20

// Attributes are its attributes of CloudEvents but the content type, as texts, without those that are empty.
func (e *Envelope) Attributes() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		all := [...]struct{ name, value string }{
			{attrVersion, "1.0"},
			{attrID, e.ID},
			{attrSource, e.Source},
			{attrType, e.Type},
			{attrSubject, e.Subject},
			{attrTime, timeText(e.Time)},
			{attrSequence, sequenceText(e.Sequence)},
		}
		for _, a := range all {
			if a.value != "" && !yield(a.name, a.value) {
				return
			}
		}
	}
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func sequenceText(sequence uint64) string {
	if sequence == 0 {
		return ""
	}
	return fmt.Sprintf("%0*d", sequenceDigits, sequence)
}

// SetAttribute reads an attribute as [Envelope.Attributes] writes it. What it does not know it ignores, as consumers of CloudEvents have to. The
// error is that of a version other than 1.0, or of a time or a sequence that is none.
func (e *Envelope) SetAttribute(name, value string) (err error) {
	switch name {
	case attrVersion:
		if value != "1.0" {
			err = fmt.Errorf("stream: a CloudEvent of version %.20q: want 1.0", value)
		}
	case attrID:
		e.ID = value
	case attrSource:
		e.Source = value
	case attrType:
		e.Type = value
	case attrSubject:
		e.Subject = value
	case attrTime:
		if e.Time, err = time.Parse(time.RFC3339Nano, value); err != nil {
			err = fmt.Errorf("stream: the time of an event: %w", err)
		}
	case attrSequence:
		if e.Sequence, err = strconv.ParseUint(value, 10, 64); err != nil {
			err = fmt.Errorf("stream: the sequence of an event: %w", err)
		}
	default:
	}
	return err
}

// structured is an envelope as JSON.
type structured struct {
	SpecVersion     string          `json:"specversion"`
	ID              string          `json:"id"`
	Source          string          `json:"source"`
	Type            string          `json:"type"`
	Subject         string          `json:"subject,omitempty"`
	Time            string          `json:"time,omitempty"`
	Sequence        string          `json:"sequence,omitempty"`
	DataContentType string          `json:"datacontenttype,omitempty"`
	Data            json.RawMessage `json:"data,omitempty"`
}

// MarshalJSON returns the JSON form of CloudEvents, without the topic. Its media type is application/cloudevents+json.
func (e Envelope) MarshalJSON() ([]byte, error) {
	return json.Marshal(structured{
		SpecVersion: "1.0", ID: e.ID, Source: e.Source, Type: e.Type, Subject: e.Subject,
		Time: timeText(e.Time), Sequence: sequenceText(e.Sequence), DataContentType: ContentType, Data: e.Data,
	})
}

// UnmarshalJSON reads the JSON form of CloudEvents. It leaves the topic as it is.
func (e *Envelope) UnmarshalJSON(text []byte) error {
	var s structured
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	read := Envelope{Topic: e.Topic, Data: s.Data}
	errs := []error{read.SetAttribute(attrVersion, s.SpecVersion)}
	for name, value := range map[string]string{
		attrID: s.ID, attrSource: s.Source, attrType: s.Type, attrSubject: s.Subject, attrTime: s.Time, attrSequence: s.Sequence,
	} {
		if value != "" {
			errs = append(errs, read.SetAttribute(name, value))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	*e = read
	return nil
}
