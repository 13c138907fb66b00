package freeze_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/freeze"
)

// TestMain is the program that is frozen, too: with several threads it writes as fast as it can.
func TestMain(m *testing.M) {
	if os.Getenv("FREEZE_WRITER") == "" {
		os.Exit(m.Run())
	}
	for range 4 {
		go func() {
			for {
				if _, err := os.Stdout.WriteString("."); err != nil {
					os.Exit(1)
				}
			}
		}()
	}
	select {}
}

func TestAFrozenProcessDoesNothingMoreAndGoesOnAfterwards(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FREEZE_WRITER=1")
	file, err := os.OpenFile(filepath.Join(t.TempDir(), "written"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(t, err)
	cmd.Stdout = file
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = file.Close()
	})
	written := func() int64 {
		info, err := file.Stat()
		require.NoError(t, err)
		return info.Size()
	}
	var before int64
	for range 50 {
		require.Eventually(t, func() bool { return written() > before }, time.Minute, time.Millisecond, "it does not go on")
		require.NoError(t, freeze.Process(cmd.Process))
		before = written()
		for range 500 {
			require.Equal(t, before, written(), "a frozen process has written")
		}
		require.NoError(t, freeze.Thaw(cmd.Process))
	}
}

func TestAProcessThatHasEndedCannotBeFrozen(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run", "^$")
	require.NoError(t, cmd.Run())
	require.ErrorIs(t, freeze.Process(cmd.Process), os.ErrProcessDone)
}
