package ratelimitclient_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/ratelimitclient"
)

// many returns so many elements with commas between them.
func many(element string, n int) string {
	return strings.Repeat(element+",", n-1) + element
}

func TestDecodingTakesNoMoreMemoryThanAFewBodies(t *testing.T) { //nolint:paralleltest // It counts what the process allocates.
	for name, body := range map[string]string{
		"limits":          `{"extensions":{"rateLimit":{"limits":[` + many(`{}`, 1_000_000) + `]}}}`,
		"entries":         `{"extensions":{"rateLimit":{"breakdown":{"entries":[` + many(`{}`, 1_000_000) + `]}}}}`,
		"lists of limits": `{"extensions":{"rateLimit":{"limits":[` + many(`[]`, 1_000_000) + `]}}}`,
		"limits again":    `{"extensions":{"rateLimit":{` + many(`"limits":[{},{},{},{},{},{},{},{}]`, 100_000) + `}}}`,
		"paths":           `{"extensions":{"rateLimit":{"breakdown":{"entries":[{"path":[` + many(`""`, 1_000_000) + `]}]}}}}`,
		"argument costs":  `{"extensions":{"rateLimit":{"breakdown":{"entries":[{"argumentCosts":[` + many(`{}`, 1_000_000) + `]}]}}}}`,
		"errors":          `{"errors":[` + many(`{}`, 1_000_000) + `]}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		response, _ := ratelimitclient.FromResponse([]byte(body))
		runtime.ReadMemStats(&after)
		require.Nil(t, response.Refusal)
		t.Logf("%s: %d MB of %d MB", name, (after.TotalAlloc-before.TotalAlloc)>>20, len(body)>>20)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16*len(body)), name)
	}
}

func TestMoreLimitsThanAServerSendsAreAnError(t *testing.T) {
	t.Parallel()
	for body, ok := range map[string]bool{
		`{"limits":[` + many(`{}`, 256) + `]}`:                 true,
		`{"limits":[` + many(`{}`, 257) + `]}`:                 false,
		`{"breakdown":{"entries":[` + many(`{}`, 2000) + `]}}`: true,
		`{"breakdown":{"entries":[` + many(`{}`, 2001) + `]}}`: false,
		`{"limits":{}}`: false,
	} {
		_, found, err := ratelimitclient.FromExtensions([]byte(`{"rateLimit":` + body + `}`))
		require.Equal(t, ok, found)
		require.Equal(t, ok, err == nil, "%.40s: %v", body, err)
	}
}

func TestMessagesCommandNoTerminal(t *testing.T) {
	t.Parallel()
	const hostile, harmless = "a\x1b[2J\r\nb\u009b31m\u202ec\x00 d", "Grüße, 世界 👩\u200d💻"
	for message, want := range map[string]string{hostile: `a\x1b[2J\r\nb\u009b31m\u202ec\x00 d`, harmless: harmless} {
		response, err := ratelimitclient.FromResponse(fmt.Appendf(nil,
			`{"errors":[{"message":%s,"extensions":{"code":"RATE_LIMITED"}}],"extensions":{"rateLimit":{"warning":{"message":%[1]s}}}}`, quoted(t, message)))
		require.NoError(t, err)
		require.Equal(t, want, response.Refusal.Error())
		require.Equal(t, want, response.RateLimit.Warning.Message)
	}
}

func quoted(t *testing.T, text string) string {
	t.Helper()
	data, err := json.Marshal(text)
	require.NoError(t, err)
	return string(data)
}
