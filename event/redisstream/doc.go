// Package redisstream brings events to streams of a Redis (package stream), for those who have no other broker.
//
// Each topic is a stream under a key of its own, which is bounded in number and in time:
//
//	rl:NAMESPACE:stream:TOPIC   the events of a topic, each with the attributes of a CloudEvent and its data as fields
//
// A batch is one script: all of it is stored, or nothing. Consumers read with XRANGE, XREAD or XREADGROUP and [Decode]; docs/guide/streams.md has
// the commands. [Forward] brings a topic on to another broker.
package redisstream
