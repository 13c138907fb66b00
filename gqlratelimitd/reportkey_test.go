package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheKeyOfHashedUsersIsReadFromAFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "report.key")
	key := []byte("0123456789abcdef")
	for _, end := range []string{"", "\n", "\r\n"} {
		require.NoError(t, os.WriteFile(file, []byte(string(key)+end), 0o600))
		got, err := reportKey(file)
		require.NoError(t, err)
		require.Equal(t, key, got)
	}
	require.NoError(t, os.WriteFile(file, key[1:], 0o600))
	_, err := reportKey(file)
	require.ErrorContains(t, err, "has 15 bytes: want 16 to 64")
	_, err = reportKey(file + "absent")
	require.ErrorIs(t, err, os.ErrNotExist)
	none, err := reportKey("")
	require.NoError(t, err)
	require.Nil(t, none)
}
