package digest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/digest"
)

func TestWhatListsMoreThanAnInstanceWritesIsNotRead(t *testing.T) {
	t.Parallel()
	list := func(n int, one string) string { return "[" + strings.Repeat(one+",", n) + one + "]" }
	var d digest.Digest
	for _, text := range []string{`"tenants":` + list(512, "{}"), `"overrides":` + list(512, "{}"), `"modes":{"inForce":` + list(16, "{}") + `}`} {
		require.ErrorIs(t, d.Decode([]byte(`{"version":1,`+text+`}`)), digest.ErrUnreadable, text[:12])
	}
	var c digest.Chunk
	for _, text := range []string{list(1024, "{}"), `[{"fields":` + list(16, `""`) + `}]`, `[{"parts":` + list(16, "{}") + `}]`, `[{"units":` + list(16, "{}") + `}]`} {
		require.ErrorIs(t, c.Decode([]byte(`{"version":1,"records":`+text+`}`)), digest.ErrUnreadable, text[:12])
	}
	require.NoError(t, d.Decode([]byte(`{"version":1,"tenants":`+list(511, "{}")+`}`)))
	require.NoError(t, c.Decode([]byte(`{"version":1,"records":`+list(1023, "{}")+`}`)))
}
