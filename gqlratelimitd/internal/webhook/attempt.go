package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Message is what an attempt brings.
type Message struct {
	// ID is the same at each attempt: 1 to 128 characters of A-Z a-z 0-9 _ -.
	ID string
	// Body is JSON, of [MaxBody] bytes at most.
	Body []byte
}

// Endpoint is where messages go. The zero value is none.
type Endpoint struct {
	// URL is what [Sender.CheckURL] takes.
	URL string
	// Secrets sign messages: one, or two while one takes the place of another.
	Secrets []Secret
}

// Outcome is what an attempt came to.
type Outcome string

// Outcomes.
const (
	// Delivered is an answer of 200 to 299.
	Delivered Outcome = "delivered"
	// Failed is anything that may be otherwise later.
	Failed Outcome = "failed"
	// Slow is an answer that asks for fewer messages: 429, 502 or 504.
	Slow Outcome = "slow"
	// Gone is the answer 410: the endpoint wants no message any more.
	Gone Outcome = "gone"
	// Refused is a message that no attempt can bring: it is too large, or malformed.
	Refused Outcome = "refused"
)

// Reason is why an attempt did not deliver, in words that a tenant may read: they say nothing of what is inside the network of the operator, nor what
// the endpoint has answered beside its status.
type Reason string

// Reasons.
const (
	// ReasonStatus is an answer with a status of another kind, redirects among them.
	ReasonStatus Reason = "status"
	// ReasonURL is a URL that may not be reached, by itself or by an address of its host, or whose host has none.
	ReasonURL Reason = "url"
	// ReasonUnreachable is an endpoint with which no connection could be made, or that has ended one.
	ReasonUnreachable Reason = "unreachable"
	// ReasonTimeout is an endpoint that has not answered in time.
	ReasonTimeout Reason = "timeout"
	// ReasonMessage is a message that is too large or malformed, or on which the sender itself has failed.
	ReasonMessage Reason = "message"
)

// Result is what became of an attempt.
type Result struct {
	Outcome Outcome
	// Reason is empty if it was delivered.
	Reason Reason
	// Status is that of the answer, 0 if there was none.
	Status int
	// RetryAfter is for how long the endpoint asks to be left alone, from 0 to [MaxRetryAfter].
	RetryAfter time.Duration
	// Err is for operators: it may have addresses. It is nil if there was an answer.
	Err error
}

var errTooLarge = fmt.Errorf("webhook: the message has more than %d bytes", MaxBody)

// MaxRetryAfter is for how long an endpoint can put off the next attempt at most.
const MaxRetryAfter = 24 * time.Hour

// Send makes one attempt. It takes as long as SenderConfig.Timeout says at most, follows no redirect, and does not read the body of the answer. The host is
// resolved and vetted each time.
func (s *Sender) Send(ctx context.Context, to Endpoint, m Message) Result {
	if len(m.Body) > MaxBody {
		return Result{Outcome: Refused, Reason: ReasonMessage, Err: errTooLarge}
	}
	u, err := s.parse(to.URL)
	if err != nil {
		return Result{Outcome: Failed, Reason: ReasonURL, Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(m.Body))
	if err != nil {
		return Result{Outcome: Failed, Reason: ReasonURL, Err: errors.New("webhook: the URL makes no request")}
	}
	request.Header.Set("Content-Type", "application/cloudevents+json")
	request.Header.Set("User-Agent", s.cfg.UserAgent)
	if err := Sign(request.Header, m.ID, time.Now(), m.Body, to.Secrets...); err != nil {
		return Result{Outcome: Refused, Reason: ReasonMessage, Err: err}
	}
	// A transport follows no redirects.
	answer, err := s.transport.RoundTrip(request)
	if err != nil {
		return Result{Outcome: Failed, Reason: reasonOf(err), Err: err}
	}
	_ = answer.Body.Close()
	return judge(answer.StatusCode, answer.Header.Get("Retry-After"), time.Now())
}

// reasonOf says what of an error a tenant may know.
func reasonOf(err error) Reason {
	var timeout net.Error
	switch {
	case errors.Is(err, errAddress), errors.Is(err, errName):
		// Both are one: otherwise who registers names would find out which of them the network of the operator has.
		return ReasonURL
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return ReasonTimeout
	default:
		return ReasonUnreachable
	}
}

// judge says what an answer means.
func judge(status int, retryAfter string, now time.Time) Result {
	const ok, redirects = 200, 300
	r := Result{Outcome: Failed, Reason: ReasonStatus, Status: status}
	switch {
	case status >= ok && status < redirects:
		return Result{Outcome: Delivered, Status: status}
	case status == http.StatusGone:
		r.Outcome = Gone
		return r
	case status == http.StatusTooManyRequests, status == http.StatusBadGateway, status == http.StatusGatewayTimeout:
		r.Outcome = Slow
	}
	if seconds, err := strconv.ParseUint(retryAfter, 10, 31); err == nil {
		r.RetryAfter = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(retryAfter); err == nil {
		r.RetryAfter = at.Sub(now)
	}
	r.RetryAfter = min(max(r.RetryAfter, 0), MaxRetryAfter)
	return r
}
