package leasetest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePageHasTheTablesOfAWholeRun(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	require.Contains(t, string(text), remake)
	for name, rows := range map[string]int{"strategies": 2 + 24, "saved": 4, "scaling": 6, "faults": 2 + 14, "processor": 6, "blocks": 3} {
		_, table, _ := parts(t, string(text), name)
		require.Equal(t, rows, strings.Count(table, "\n"), "%s is old: make it anew with %s", name, remake)
	}
}
