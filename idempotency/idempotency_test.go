package idempotency_test

import (
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/idempotency"
)

func TestParseKeyAcceptsQuotedAndBareKeysAlike(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		"8e03978e-40d5-43dd-bc93-6894a57f9324", `"8e03978e-40d5-43dd-bc93-6894a57f9324"`,
		" \t8e03978e-40d5-43dd-bc93-6894a57f9324 ",
	} {
		key, err := idempotency.ParseKey(value)
		require.NoError(t, err, value)
		require.Equal(t, idempotency.Key("8e03978e-40d5-43dd-bc93-6894a57f9324"), key)
	}
	for _, value := range []string{"A_z-09.x", strings.Repeat("k", 8), strings.Repeat("k", 128)} {
		_, err := idempotency.ParseKey(value)
		require.NoError(t, err, value)
	}
}

func TestParseKeySaysWhatIsWrongAndNeverRepeatsTheKey(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"":                       "0 characters long, want 8 to 128",
		"SECRET7":                "7 characters long",
		strings.Repeat("S", 129): "129 characters long",
		`"SECRET78`:              "quotation marks do not match",
		`SECRET78"`:              "quotation marks do not match",
		`"`:                      "quotation marks do not match",
		`"SECRET7"`:              "7 characters long",
		"SECRET 78":              "character 7 is not one of",
		"SECRET78\n":             "character 9 is not one of",
		"SECRÉT78":               "character 5 is not one of",
		"SECRET:78":              "character 7 is not one of",
	} {
		_, err := idempotency.ParseKey(value)
		require.ErrorIs(t, err, idempotency.ErrKeyInvalid, value)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "SECR")
	}
}

func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{"12345678", `"12345678"`, `""`, `"`, " 12345678 ", "a\x00bcdefgh", strings.Repeat("x", 129)} {
		f.Add(seed)
	}
	form := regexp.MustCompile(`^[A-Za-z0-9_.-]{8,128}$`)
	f.Fuzz(func(t *testing.T, value string) {
		key, err := idempotency.ParseKey(value)
		if err != nil {
			if !errors.Is(err, idempotency.ErrKeyInvalid) || key != "" {
				t.Fatalf("key %q with error %v", key, err)
			}
			return
		}
		if !form.MatchString(string(key)) {
			t.Fatalf("%q is not a key", key)
		}
		for _, spelling := range []string{string(key), `"` + string(key) + `"`} {
			if again, err := idempotency.ParseKey(spelling); err != nil || again != key {
				t.Fatalf("%q reads as %q, %v", spelling, again, err)
			}
		}
	})
}

func TestFingerprintTellsOperationsApart(t *testing.T) {
	t.Parallel()
	fingerprint := func(document, name string, variables map[string]any) idempotency.Fingerprint {
		f, err := idempotency.NewFingerprint(document, name, variables)
		require.NoError(t, err)
		return f
	}
	base := fingerprint("mutation A{a}", "A", map[string]any{"x": 1, "y": map[string]any{"a": 1, "b": 2}})
	require.Equal(t, base, fingerprint("mutation A{a}", "A", map[string]any{"y": map[string]any{"b": 2, "a": 1}, "x": 1}),
		"the order of variables does not matter")
	for _, other := range []idempotency.Fingerprint{
		fingerprint("mutation A{b}", "A", map[string]any{"x": 1, "y": map[string]any{"a": 1, "b": 2}}),
		fingerprint("mutation A{a}", "B", map[string]any{"x": 1, "y": map[string]any{"a": 1, "b": 2}}),
		fingerprint("mutation A{a}", "A", map[string]any{"x": "1", "y": map[string]any{"a": 1, "b": 2}}),
		fingerprint("mutation A{a}A", "", map[string]any{"x": 1, "y": map[string]any{"a": 1, "b": 2}}),
		fingerprint("mutation A{a}", "A", nil),
	} {
		require.NotEqual(t, base, other)
	}
	_, err := idempotency.NewFingerprint("", "", map[string]any{"x": math.NaN()})
	require.Error(t, err, "what has no JSON form has no fingerprint")
}

func TestRecordNamesAreFixedInSizeAndKeepSubjectsApart(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, claim := range []idempotency.Claim{
		{Subject: "ab", Key: "cdefghij"},
		{Subject: "abc", Key: "defghij"},
		{Subject: "", Key: "abcdefghij"},
		{Subject: strings.Repeat("{", 10_000), Key: "12345678"},
		{Subject: "ab", Key: "cdefghik"},
		{Subject: "ab", Key: "cdefghij", ReuseAsNew: true},
		{Subject: "ab", Key: "cdefghij", ReuseAsNew: true, Fingerprint: idempotency.Fingerprint{1}},
	} {
		name := claim.RecordName()
		require.Regexp(t, `^[A-Za-z0-9_-]{22}$`, name)
		require.False(t, seen[name])
		seen[name] = true
		claim.Attempt = idempotency.NewAttemptID()
		require.Equal(t, name, claim.RecordName(), "all attempts share one record")
	}
}

func TestAttemptsAreDifferent(t *testing.T) {
	t.Parallel()
	first, second := idempotency.NewAttemptID(), idempotency.NewAttemptID()
	require.NotEqual(t, first, second)
}
