package web

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestManyWhoAskWhetherItIsReadyMakeOneLookAndOneLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var failure error
		looks := 0
		r := &readiness{now: time.Now, log: slog.New(slog.NewTextHandler(&log, nil)), check: func(ctx context.Context) map[string]error {
			looks++
			if failure == nil {
				return nil
			}
			// A database that is silent takes all of the time that there is.
			<-ctx.Done()
			return map[string]error{partDatabase: failure}
		}}
		require.Empty(t, r.ask())
		time.Sleep(readyFor) //nolint:forbidigo // in a synctest bubble
		failure = errors.New("silent")
		began := time.Now()
		for range 100 {
			require.Len(t, r.ask(), 1)
		}
		require.Equal(t, 2*time.Second, time.Since(began), "nobody waits for the looks of others")
		require.Equal(t, 2, looks)
		time.Sleep(readyFor) //nolint:forbidigo // in a synctest bubble
		require.Len(t, r.ask(), 1)
		require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		failure = nil
		time.Sleep(readyFor) //nolint:forbidigo // in a synctest bubble
		require.Empty(t, r.ask())
		require.Contains(t, log.String(), "works again")
	})
}
