package web

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
)

func TestAPolicyThatIsAlwaysReplacedIsAConflictThatSaysWhatToDo(t *testing.T) {
	t.Parallel()
	p := problemOf(fmt.Errorf("put: %w", control.ErrPolicyChanged))
	require.Equal(t, http.StatusPreconditionFailed, p.Status)
	require.Contains(t, p.Detail, "Send it again")
	require.Positive(t, p.retryAfter)
	require.Nil(t, p.Current, "nobody has to look at a revision")
}
