package patient_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/clients/patient"
)

// errLost is what a client sees whose answer got lost.
var errLost = errors.New("connection reset")

const (
	refused      = `{"errors": [{"message": "wait", "extensions": {"code": "RATE_LIMITED", "retryAfter": 2}}], "data": null}`
	tooExpensive = `{"errors": [{"message": "no", "extensions": {"code": "COST_LIMIT_EXCEEDED"}}], "data": null}`
	answered     = `{"data": {"ok": true}}`
)

// server answers with each text once, and with the last one from then on. An empty text is a lost answer.
type server struct {
	answers []string
	media   string
	status  int
	// bodies and keys are those of the requests that came, and at when they came.
	bodies, keys []string
	at           []time.Duration
	start        time.Time
	closed       int
}

func (s *server) Do(request *http.Request) (*http.Response, error) {
	if s.start.IsZero() {
		s.start = time.Now()
	}
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	s.bodies = append(s.bodies, string(body))
	s.keys = append(s.keys, request.Header.Get("Idempotency-Key"))
	s.at = append(s.at, time.Since(s.start))
	text := s.answers[min(len(s.at), len(s.answers))-1]
	if text == "" {
		return nil, errLost
	}
	media := s.media
	if media == "" {
		media = "application/json; charset=utf-8"
	}
	return &http.Response{
		StatusCode: s.status, Header: http.Header{"Content-Type": {media}},
		Body: &counted{Reader: strings.NewReader(text), closed: &s.closed},
	}, nil
}

// counted is a body that counts how often it is closed.
type counted struct {
	io.Reader
	closed *int
}

func (c *counted) Close() error {
	*c.closed++
	return nil
}

func post(ctx context.Context, t *testing.T) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.test/query", strings.NewReader("body"))
	require.NoError(t, err)
	return request
}

// requireBody checks that the body is whole and closes it.
func requireBody(t *testing.T, want string, response *http.Response, err error) {
	t.Helper()
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, want, string(body))
}

func TestARefusalIsWaitedForWhateverItsStatus(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusTooManyRequests, http.StatusOK} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{status: status, answers: []string{refused, refused, answered}}
			client := patient.Client{Doer: s}
			request, sent := post(t.Context(), t), 0
			request.Body = &counted{Reader: request.Body, closed: &sent}
			response, err := client.Do(request)
			requireBody(t, answered, response, err)
			require.Equal(t, []string{"body", "body", "body"}, s.bodies)
			require.Equal(t, 3, s.closed, "no connection leaks")
			require.Equal(t, 1, sent, "the body that was given is closed")
			for i, least := range []time.Duration{0, 2 * time.Second, 4 * time.Second} {
				require.GreaterOrEqual(t, s.at[i], least)
				require.LessOrEqual(t, s.at[i], least+least/4)
			}
		})
	}
}

func TestWhatCannotPassLaterIsReturnedAtOnce(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]*server{
		"a refusal for good":      {answers: []string{tooExpensive}},
		"an answer":               {answers: []string{answered}},
		"a long answer":           {answers: []string{`{"data": {"all": "` + strings.Repeat("x", 1<<20) + `"}}`}},
		"what is no GraphQL":      {answers: []string{"<html>"}, media: "text/html"},
		"a refusal in a stream":   {answers: []string{"data: " + refused}, media: "text/event-stream"},
		"a refusal in plain text": {answers: []string{refused}, media: "text/plain"},
		"a wait that is too long": {answers: []string{strings.Replace(refused, `": 2`, `": 31`, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := patient.Client{Doer: s}
				response, err := client.Do(post(t.Context(), t))
				requireBody(t, s.answers[0], response, err)
				require.Len(t, s.at, 1)
			})
		})
	}
}

func TestTheLastRefusalIsReturnedWhole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{answers: []string{refused}}
		client := patient.Client{Doer: s, Attempts: 2}
		response, err := client.Do(post(t.Context(), t))
		requireBody(t, refused, response, err)
		require.Len(t, s.at, 2)
	})
}

func TestARefusalWithoutATimeIsWaitedForASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{answers: []string{strings.Replace(refused, `, "retryAfter": 2`, "", 1), answered}}
		client := patient.Client{Doer: s}
		response, err := client.Do(post(t.Context(), t))
		requireBody(t, answered, response, err)
		require.GreaterOrEqual(t, s.at[1], time.Second)
	})
}

func TestALostAnswerIsAskedForAgainOnlyUnderAKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &server{answers: []string{"", "", answered}}
		client := patient.Client{Doer: s}
		_, err := client.Do(post(t.Context(), t)) //nolint:bodyclose // there is no response beside the error
		require.ErrorIs(t, err, errLost)
		require.Len(t, s.at, 1)

		s = &server{answers: []string{"", "", answered}}
		client.Doer = s
		response, err := client.Do(post(patient.WithKey(t.Context(), "key-of-one"), t))
		requireBody(t, answered, response, err)
		require.Equal(t, []string{"key-of-one", "key-of-one", "key-of-one"}, s.keys)
		require.GreaterOrEqual(t, s.at[2]-s.at[1], 500*time.Millisecond, "the second wait is twice the first")
	})
}

func TestNobodyWaitsBeyondTheDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := &server{answers: []string{refused}}
		client := patient.Client{Doer: s}
		response, err := client.Do(post(ctx, t))
		requireBody(t, refused, response, err)
		require.NoError(t, ctx.Err(), "it returns at once")
	})
}

func TestACanceledContextEndsTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		leaving := errors.New("the user left")
		time.AfterFunc(time.Second, func() { cancel(leaving) })
		s := &server{answers: []string{refused}}
		client := patient.Client{Doer: s}
		_, err := client.Do(post(ctx, t)) //nolint:bodyclose // there is no response beside the error
		require.ErrorIs(t, err, leaving)
		require.Len(t, s.at, 1)
		require.Equal(t, 1, s.closed)
	})
}

func TestABodyThatCannotBeReadAgainIsSentOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		request := post(t.Context(), t)
		request.GetBody = nil
		s := &server{answers: []string{refused}}
		client := patient.Client{Doer: s}
		response, err := client.Do(request)
		requireBody(t, refused, response, err)
		require.Len(t, s.at, 1)
	})
}

// unreadable answers with a body that breaks off.
type unreadable struct{ err error }

func (u unreadable) Do(*http.Request) (*http.Response, error) {
	body := io.MultiReader(strings.NewReader(`{"data"`), iotest.ErrReader(u.err))
	return &http.Response{Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(body)}, nil
}

func TestABodyThatBreaksOffIsReadAsFarAsItCame(t *testing.T) {
	t.Parallel()
	client := patient.Client{Doer: unreadable{errLost}}
	response, err := client.Do(post(t.Context(), t))
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.ErrorIs(t, err, errLost)
	require.Equal(t, `{"data"`, string(body))
	require.NoError(t, response.Body.Close())
}
