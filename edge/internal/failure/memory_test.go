package failure_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/edge/internal/failure"
)

var (
	alice, bob = [3]string{"alice"}, [3]string{"bob"}
	failed     = gqlerror.List{{Message: "what a presenter told Alice", Extensions: map[string]any{"code": errcode.ParseFailed}}}
)

func TestAFailureIsForgottenAfterAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := failure.New(1 << 20)
		m.Remember("{", alice, failed)
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		require.NotNil(t, m.Find("{"))
		time.Sleep(time.Second) //nolint:forbidigo // in a bubble
		require.Nil(t, m.Find("{"))
	})
}

func TestWhatOneWasToldIsNotToldAnother(t *testing.T) {
	t.Parallel()
	m := failure.New(1 << 20)
	m.Remember("{", alice, failed)
	require.Equal(t, failed, m.Find("{").Answer(alice))
	told := m.Find("{").Answer(bob)
	require.Equal(t, "the document does not parse", told[0].Message)
	require.Equal(t, errcode.ParseFailed, told[0].Extensions["code"])
	require.Nil(t, m.Find("{ "), "of another text nothing is known")
}

func TestAnAnswerThatSomebodyChangesIsNotWhatIsRemembered(t *testing.T) {
	t.Parallel()
	m := failure.New(1 << 20)
	m.Remember("{", alice, failed)
	first := m.Find("{").Answer(alice)[0]
	first.Message, first.Extensions["code"] = "changed", "CHANGED"
	require.Equal(t, failed, m.Find("{").Answer(alice))
}
