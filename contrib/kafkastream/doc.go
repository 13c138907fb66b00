// Package kafkastream brings events to Kafka (package event/stream): a record for each, whose key is the tenant, with the attributes of a CloudEvent as
// headers and the data as its value, as the protocol binding of CloudEvents for Kafka has it in binary mode.
//
// It writes as an idempotent producer and counts what all replicas in sync have acknowledged. docs/guide/streams.md has first steps.
package kafkastream
