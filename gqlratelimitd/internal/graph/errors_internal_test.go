package graph

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/internal/control"
)

func TestAPolicyThatIsAlwaysReplacedIsAConflictThatSaysWhatToDo(t *testing.T) {
	t.Parallel()
	var e *gqlerror.Error
	require.ErrorAs(t, told(t.Context(), slog.New(slog.DiscardHandler), fmt.Errorf("put: %w", control.ErrPolicyChanged)), &e)
	require.Equal(t, CodeConflict, e.Extensions["code"])
	require.Contains(t, e.Message, "send it again")
	require.NotContains(t, e.Extensions, "currentRevision", "nobody has to look at a revision")
}
