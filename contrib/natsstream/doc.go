// Package natsstream brings events to NATS JetStream (package event/stream): a message for each, on the subject TOPIC.TENANT, with the attributes of a CloudEvent as
// headers and the data as its payload, as the protocol binding of CloudEvents for NATS has it in binary mode.
//
// Its id is the Nats-Msg-Id as well, by which JetStream stores once what is sent again within its window. docs/guide/streams.md has first steps.
package natsstream
