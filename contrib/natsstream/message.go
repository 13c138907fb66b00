package natsstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/gqlgen-ratelimit/ratelimit/event/stream"
)

// Names of headers, as the protocol binding of CloudEvents for NATS has them.
const (
	attributePrefix = "ce-"
	contentType     = "content-type"
)

// subjectOf returns the subject of an envelope: its topic, and its key as one token.
func subjectOf(e *stream.Envelope) string { return e.Topic + "." + escape(e.Key(), isToken) }

func isToken(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// isHeader says which bytes stand in headers as they are, by the binding of CloudEvents for HTTP.
func isHeader(c byte) bool { return c > ' ' && c < 0x7f && c != '"' && c != '%' }

// escape returns a text with %XX for each byte that is not plain.
func escape(text string, plain func(byte) bool) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; plain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// messageOf returns an envelope as it is sent.
func messageOf(e *stream.Envelope) *nats.Msg {
	m := &nats.Msg{Subject: subjectOf(e), Header: nats.Header{}, Data: e.Data}
	for name, value := range e.Attributes() {
		m.Header.Set(attributePrefix+name, escape(value, isHeader))
	}
	m.Header.Set(contentType, stream.ContentType)
	m.Header.Set(nats.MsgIdHdr, escape(e.ID, isHeader))
	return m
}

// Decode reads a message as it was sent, from its subject, its headers and its payload. The error is that of one which somebody else has sent.
func Decode(subject string, header nats.Header, data []byte) (stream.Envelope, error) {
	e := stream.Envelope{Topic: subject[:max(0, strings.LastIndexByte(subject, '.'))], Data: data}
	version := false
	var errs []error
	for name, values := range header {
		attribute, ok := strings.CutPrefix(strings.ToLower(name), attributePrefix)
		if !ok || len(values) != 1 {
			continue
		}
		value, err := url.PathUnescape(values[0])
		version = version || attribute == "specversion"
		errs = append(errs, err, e.SetAttribute(attribute, value))
	}
	if !version || e.ID == "" || !json.Valid(e.Data) {
		errs = append(errs, errors.New("it is no CloudEvent with data of JSON"))
	}
	if err := errors.Join(errs...); err != nil {
		return stream.Envelope{}, fmt.Errorf("natsstream: the message on %.300s: %w", subject, err)
	}
	return e, nil
}
