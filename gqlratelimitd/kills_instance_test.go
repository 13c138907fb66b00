package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/bucket/redisclient"
	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

// What an instance says of an operation, a line each, before and after each call: of a call that was begun and is not ended nobody knows what became.
const (
	saidTaking = "taking"
	// saidTook: the reply says that it was charged.
	saidTook = "took"
	// saidAgain: it was admitted, and an earlier try was charged.
	saidAgain = "again"
	// saidLost: there was no reply.
	saidLost = "lost"
	// saidNot: it was surely not charged by this call.
	saidNot      = "not"
	saidSettling = "settling"
	saidSettled  = "settled"
	// saidWrong: it was answered what nobody may be answered.
	saidWrong = "wrong"
)

const (
	// workers are how many operations an instance has at once, and workerPause is how long each waits at most between two.
	workers     = 3
	workerPause = 60 * time.Millisecond
	// Everybody takes for a part of each span of time and then rests, so that there are moments in which an hour stays as a collector has read it.
	busySpan, busyPart = 2 * time.Second, time.Second
	// instanceTries are how often a call is made of which nothing is known.
	instanceTries = 6
)

// countingInstance is an instance of an API: it takes and settles late. It runs until it is killed.
type countingInstance struct {
	budgets
	store *bucket.Redis
}

// runInstance runs an instance of a name, which first goes on with operations of the one before it, whose clients try again.
func runInstance(name, address, unfinished string) error {
	client, err := redisclient.Open(address, redisclient.Config{})
	if err != nil {
		return err
	}
	const timeout = 500 * time.Millisecond
	store, err := bucket.NewRedis(bucket.RedisConfig{Client: client, Timeout: timeout, Patience: timeout})
	if err != nil {
		return err
	}
	budgets, err := newBudgets()
	if err != nil {
		return err
	}
	i := &countingInstance{budgets, store}
	say("up", name)
	for _, again := range strings.Fields(unfinished) {
		go i.operate(operationOf(again))
	}
	boot := rand.Uint64()
	for worker := range workers {
		go func() {
			for n := 0; ; n++ {
				i.operate(operationOf(fmt.Sprintf("%s-%x-%d-%d", name, boot, worker, n)))
				<-time.After(rand.N(workerPause))
				if at := time.Duration(time.Now().UnixNano()) % busySpan; at > busyPart {
					<-time.After(busySpan - at)
				}
			}
		}()
	}
	select {}
}

// say writes a line in one call of the system, so that it is there as a whole or not at all.
func say(word string, about any) { _, _ = fmt.Fprintf(os.Stdout, "%s %v\n", word, about) }

// operate does an operation, and has it settled.
func (i *countingInstance) operate(o *operation) {
	for range instanceTries {
		take := i.take(o)
		say(saidTaking, o.name)
		result, err := i.store.Take(context.Background(), take)
		switch {
		case errors.Is(err, bucket.ErrAmbiguous):
			say(saidLost, o.name)
		case err != nil:
			say(saidNot, o.name)
		case result.Verdict == bucket.Admitted:
			if result.Repeat {
				say(saidAgain, o.name)
			} else {
				say(saidTook, o.name)
			}
			// Whoever asks next does not wait for what is settled late.
			go i.settle(o, result.Receipt, take.Claim)
			return
		case result.Verdict == bucket.InFlight && o.keyed:
			say(saidNot, o.name)
			<-time.After(result.RetryAfter)
			continue
		case result.Verdict == bucket.Replayed && o.keyed:
			say(saidNot, o.name)
			return
		default:
			say(saidWrong, o.name)
			return
		}
		if !o.keyed {
			return
		}
		<-time.After(rand.N(workerPause))
	}
}

// settle corrects the charge of an operation, perhaps late, and ends its claim.
func (i *countingInstance) settle(o *operation, receipt bucket.Receipt, claim *idempotency.Claim) {
	<-time.After(o.late)
	settlement := bucket.Settlement{Receipt: receipt, Actual: o.worth}
	if claim != nil {
		settlement.Claim = &bucket.ClaimSettlement{Tenant: o.tenant, Claim: claim, Outcome: idempotency.Done, Answer: []byte("{}")}
	}
	for range instanceTries {
		if !receipt.IsZero() {
			say(saidSettling, o.name)
		}
		settled, err := i.store.Settle(context.Background(), settlement)
		switch {
		case err == nil && settled.Applied && !receipt.IsZero():
			say(saidSettled, o.name)
			return
		case err == nil:
			return
		}
		<-time.After(rand.N(workerPause))
	}
}
