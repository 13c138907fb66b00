package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit"
	"github.com/gqlgen-ratelimit/ratelimit/bucket"
	"github.com/gqlgen-ratelimit/ratelimit/cost"
	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// atMost bounds answers to so many bytes, and prices aliases as if there were none.
func atMost(bytes int64) func(*ratelimit.Config) {
	return func(cfg *ratelimit.Config) { cfg.Answer.MaxBytes = bytes }
}

// rawData returns the data of an answer as it was written.
func rawData(t *testing.T, body string) string {
	t.Helper()
	var answer struct{ Data json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	return string(answer.Data)
}

// aliases selects a field under so many names.
func aliases(n int, field string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, " a%d: %s", i, field)
	}
	return b.String()
}

func TestAnAnswerMayHaveAsManyBytesAsItIsAllowedAndNotOneMore(t *testing.T) {
	t.Parallel()
	for name, query := range map[string]string{
		"objects":              `{ users(first: 7) { id name friends(first: 2) { name } } }`,
		"several root fields":  `{ a: me { name } b: users(first: 3) { name } c: matrix(origins: ["1"], destinations: ["2"]) }`,
		"text that is escaped": `mutation { createUser(input: {name: "\"\u0001\\\u0002\"\u0003\u0004\u0005 <é>"}) { name } }`,
		"introspection":        `{ __type(name: "User") { name fields { name description } } }`,
		"names alone":          `{ __typename again: __typename }`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := rawData(t, newFixture(t, atMost(ratelimit.None)).post(request{Query: query, Tenant: plenty}).Body)
			fits := newFixture(t, atMost(int64(len(whole)))).post(request{Query: query, Tenant: plenty})
			require.Equal(t, whole, rawData(t, fits.Body))
			over := newFixture(t, atMost(int64(len(whole)-1))).post(request{Query: query, Tenant: plenty})
			require.Equal(t, "null", rawData(t, over.Body), over.Body)
			require.Contains(t, over.Body, ratelimitclient.CodeQueryLimitExceeded)
			require.Contains(t, over.Body, `"rule":"responseBytes"`)
			require.NotContains(t, over.Body, `"actual"`, "nobody knows what it would have come to")
		})
	}
}

// countsFields counts the fields that are resolved, and keeps the data of responses as it sees it.
type countsFields struct {
	resolved atomic.Int64
	seen     atomic.Pointer[string]
}

func (*countsFields) ExtensionName() string                   { return "CountsFields" }
func (*countsFields) Validate(graphql.ExecutableSchema) error { return nil }
func (c *countsFields) InterceptField(ctx context.Context, next graphql.Resolver) (any, error) {
	c.resolved.Add(1)
	return next(ctx)
}

func (c *countsFields) InterceptResponse(ctx context.Context, next graphql.ResponseHandler) *graphql.Response {
	response := next(ctx)
	if response != nil {
		data := string(response.Data)
		c.seen.Store(&data)
	}
	return response
}

func TestNoFieldIsResolvedOnceAnAnswerIsTooLarge(t *testing.T) {
	t.Parallel()
	f := newFixture(t, atMost(2000))
	counts := &countsFields{}
	f.server.Use(counts)
	over := f.post(request{Query: `{ users(first: 60) {` + aliases(50, "name") + `} }`, Tenant: plenty})
	require.Contains(t, over.Body, `"rule":"responseBytes"`)
	require.Less(t, len(over.Body), 1000)
	// A field has ten bytes at least. Users are resolved one beside the other.
	require.Less(t, counts.resolved.Load(), int64(400), "of 3 000")
	require.True(t, json.Valid([]byte(*counts.seen.Load())), "other extensions read what is there")
}

func TestWhatEscapingAddsIsNotBuilt(t *testing.T) {
	t.Parallel()
	f := newFixture(t, atMost(3000))
	counts := &countsFields{}
	f.server.Use(counts)
	// 1 000 bytes of text, of which each is written as six.
	query := fmt.Sprintf(`mutation { a: createUser(input: {name: %q}) { id } b: createUser(input: {name: "%s"}) { name } }`,
		"short", strings.Repeat(`\u0001`, 1000))
	over := f.post(request{Query: query, Tenant: plenty})
	require.Contains(t, over.Body, `"rule":"responseBytes"`)
	require.Less(t, len(*counts.seen.Load()), 100, "what did not fit was taken back")
	require.True(t, json.Valid([]byte(*counts.seen.Load())))
}

func TestAMutationIsNotCutInTheMiddle(t *testing.T) {
	t.Parallel()
	f := newFixture(t, atMost(100))
	long := strings.Repeat("x", 200)
	over := f.post(request{Query: fmt.Sprintf(
		`mutation { a: createUser(input: {name: %[1]q}) { name } b: createUser(input: {name: %[1]q}) { name } }`, long), Tenant: plenty})
	require.Contains(t, over.Body, `"rule":"responseBytes"`)
	require.EqualValues(t, 2, f.resolver.Created.Load())
}

func TestMessagesOfErrorsCountAsBytesOfTheAnswer(t *testing.T) {
	t.Parallel()
	query := "{" + aliases(40, "fails") + "}"
	require.NotContains(t, newFixture(t, nil).post(request{Query: query, Tenant: plenty}).Body, "responseBytes")
	over := newFixture(t, atMost(2000)).post(request{Query: query, Tenant: plenty})
	require.Contains(t, over.Body, `"rule":"responseBytes"`)
	require.Less(t, len(over.Body), 1000)
}

func TestNothingIsGivenBackForAnAnswerThatWasTooLarge(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) {
		cfg.Policy = policyOf(t, "version: 1\ndefault: free\ntiers:\n  free:\n    limits: {minute: {capacity: 100000, per: minute}}\n")
		cfg.Answer.MaxBytes = 500
		cfg.Settlement = ratelimit.SettlementConfig{Refund: true, FailedShare: 1}
	})
	for range 3 {
		f.post(request{Query: `{ users(first: 20) {` + aliases(20, "name") + `} }`})
	}
	require.NoError(t, f.limiter.AwaitSettled(t.Context()))
	require.Len(t, f.store.Takes(), 3)
	require.Empty(t, f.store.Settlements())
}

func TestEachEventIsAnAnswerOfItsOwn(t *testing.T) {
	t.Parallel()
	event := `{"ticks":0}`
	fits := newFixture(t, atMost(int64(len(event)))).sse(request{Query: `subscription { ticks(count: 5) }`, Tenant: plenty})
	require.Equal(t, 5, strings.Count(fits.Body, `"ticks"`))
	over := newFixture(t, atMost(int64(len(event)-1))).sse(request{Query: `subscription { ticks(count: 5) }`, Tenant: plenty})
	require.NotContains(t, over.Body, `"ticks"`)
	require.Equal(t, 5, strings.Count(over.Body, `"rule":"responseBytes"`))
}

func TestAnErrorOfAnAnswerThatWasTooLargeIsKnownToThePresenter(t *testing.T) {
	t.Parallel()
	f, decided := newDecided(t, atMost(50))
	over := f.post(request{Query: `{ users(first: 20) { name } }`, Tenant: plenty})
	told := decided.find(t, refusalIDOf(t, over.Body))
	require.EqualValues(t, ratelimit.OutcomeQueryLimited, told.Outcome)
	require.True(t, told.Charge, "it was refused in the middle of the operation")
}

// bytesPolicy has a limit of the bytes that leave.
func bytesPolicy(t *testing.T, capacity int) func(*ratelimit.Config) {
	t.Helper()
	return func(cfg *ratelimit.Config) {
		cfg.Policy = policyOf(t, fmt.Sprintf(`
version: 1
default: free
tiers:
  free:
    limits:
      minute: {capacity: 100000, per: minute}
      out: {unit: response_bytes, capacity: %d, per: minute}
`, capacity))
	}
}

func TestBytesThatLeaveAreChargedOnAndMayOverdraw(t *testing.T) {
	t.Parallel()
	f := newFixture(t, bytesPolicy(t, 100))
	first := f.post(request{Query: `{ users(first: 10) { name } }`})
	data := int64(len(rawData(t, first.Body)))
	require.Greater(t, data, int64(150))
	require.NoError(t, f.limiter.AwaitSettled(t.Context()))
	settled := f.store.Settlements()
	require.Len(t, settled, 1)
	require.Equal(t, data, settled[0].Actual.Of(bucket.ResponseBytes))
	refused := f.post(request{Query: `{ me { name } }`})
	require.Contains(t, refused.Body, ratelimitclient.CodeRateLimited)
	require.Contains(t, refused.Body, `"unit":"response_bytes"`)
}

func TestWhatIsNotCountedInBytesIsNotSettled(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.post(request{Query: `{ users(first: 10) { name } }`})
	require.NoError(t, f.limiter.AwaitSettled(t.Context()))
	require.Empty(t, f.store.Settlements())
	require.Zero(t, f.store.Takes()[0].Amounts.Of(bucket.ResponseBytes))
}

func TestTheBytesOfAnAnswerThatWasCutAreThoseThatItMayHave(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(cfg *ratelimit.Config) {
		bytesPolicy(t, 10_000)(cfg)
		cfg.Answer.MaxBytes, cfg.Pricing.Cost = 200, cost.Config{}
	})
	f.post(request{Query: `{ users(first: 60) { name } }`})
	require.NoError(t, f.limiter.AwaitSettled(t.Context()))
	require.EqualValues(t, 200, f.store.Settlements()[0].Actual.Of(bucket.ResponseBytes))
}
