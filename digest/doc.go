// Package digest keeps what an instance has decided of late in so few bytes that each instance can write it down once a second:
// the refusals by their ids, the busiest tenants, how many were refused and would have been, and a sample of what was decided for
// a preview of another policy. It is what is read at three in the morning, when there is no broker of events and no search in logs.
//
// A [Collector] is an observer of the server. It stands in the request and waits for nobody: what comes is counted, or put
// into a queue, or dropped and counted. Once a second its owner takes what there is ([Collector.Collect]); package redisdigest has
// an owner that writes it into a Redis, and a reader.
//
// Of an instance there is a bounded amount, whoever asks for whatever: names are cut and escaped, tenants, refusals and records
// have numbers that they do not exceed. What is counted is said to be exact or a sample.
package digest
