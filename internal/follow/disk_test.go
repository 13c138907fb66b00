package follow_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/internal/follow"
)

func TestAFileIsReplacedAsAWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "good")
	write := func(text string, err error) error {
		return follow.WriteFile(path, func(to io.Writer) error {
			_, wrong := io.WriteString(to, text)
			return errors.Join(wrong, err)
		})
	}
	require.NoError(t, write("first", nil))
	full := errors.New("the disk is full")
	require.ErrorIs(t, write("half of the sec", full), full)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "first", string(text))
	files, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, files, 1, "nothing is left behind")
	require.NoError(t, os.RemoveAll(folder))
	require.Error(t, write("third", nil))
}

func TestWhatIsKeptIsSavedInTimeWhenDueAndAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		saved := 0
		ctx, cancel := context.WithCancel(context.Background())
		due := make(chan struct{}, 1)
		go follow.Keep(ctx, 10*time.Second, due, func(context.Context) { saved++ })
		time.Sleep(35 * time.Second) //nolint:forbidigo // the clock of a synctest bubble
		synctest.Wait()
		require.Equal(t, 3, saved)
		due <- struct{}{}
		synctest.Wait()
		require.Equal(t, 4, saved)
		cancel()
		synctest.Wait()
		require.Equal(t, 5, saved)
	})
}
