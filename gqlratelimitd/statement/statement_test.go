package statement_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/statement"
)

// newKey makes a key that signs.
func newKey(t testing.TB) *audit.Key {
	t.Helper()
	private, _, err := audit.NewKey("log.example.org")
	require.NoError(t, err)
	key, err := audit.ParseKey(private)
	require.NoError(t, err)
	return key
}

func date(month time.Month) time.Time {
	return time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC)
}

// october is a statement with everything that one may have, but for differences.
func october() *statement.Statement {
	return &statement.Statement{
		Number: 7, Tenant: `ac"me\ ü`, From: date(10), To: date(11), Frozen: date(11).Add(49 * time.Hour), Collected: date(11).Add(48 * time.Hour),
		Unknown: date(10).Add(time.Hour), Previous: statement.Reference{Number: 3, Hash: statement.Hash{1}},
		Lines: []statement.Line{
			{Unit: "points", Grade: "exact", Charged: 100, GivenBack: 120},
			{Unit: "points", Grade: "local", Charged: 3},
			{Unit: "points", Field: "Query.a", Grade: "exact", Charged: 60, Calls: 6},
			{Unit: "requests", Grade: "exact", Charged: statement.MaxCount},
		},
	}
}

// correction corrects october.
func correction() *statement.Statement {
	s := october()
	s.Number, s.Previous, s.Corrects = 9, statement.Reference{Number: 7, Hash: october().Hash()}, statement.Reference{Number: 7, Hash: october().Hash()}
	s.Lines[0].GivenBack = 130
	s.Lines = append(s.Lines[:2:2], s.Lines[3:]...)
	s.Differences = statement.Difference(october().Lines, s.Lines)
	return s
}

func TestAStatementIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	for _, s := range []*statement.Statement{october(), correction()} {
		signed, err := s.Sign(key)
		require.NoError(t, err)
		read, by, err := statement.Open(signed, newKey(t).Public(), key.Public())
		require.NoError(t, err)
		require.Equal(t, key.Public(), by)
		require.Equal(t, s, read)
		require.Equal(t, s.Hash(), read.Hash())
		unasked, err := statement.Read(signed)
		require.NoError(t, err)
		require.Equal(t, s, unasked)
		_, _, err = statement.Open(signed, newKey(t).Public())
		require.Error(t, err)
		// What the same key signs of another kind is none, and a statement is no checkpoint.
		_, err = audit.OpenCheckpoint(signed, key.Public())
		require.Error(t, err)
	}
}

func TestEachBitThatIsFlippedIsFound(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	signed, err := correction().Sign(key)
	require.NoError(t, err)
	for i := range signed {
		for bit := range 8 {
			flipped := append([]byte(nil), signed...)
			flipped[i] ^= 1 << bit
			_, _, err := statement.Open(flipped, key.Public())
			require.Error(t, err, "bit %d of byte %d", bit, i)
		}
	}
	for n := range signed {
		_, _, err := statement.Open(signed[:n], key.Public())
		require.Error(t, err, "%d bytes", n)
	}
	for _, more := range []string{"\n", " ", "— log.example.org " + base64.StdEncoding.EncodeToString(make([]byte, 68)) + "\n"} {
		_, _, err := statement.Open(append(append([]byte(nil), signed...), more...), key.Public())
		require.Error(t, err, more)
	}
}

// Who has the key can sign anything: what is wrong in itself is found all the same.
func TestWhatIsSignedAndWrongInItselfIsNoStatement(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	text, err := correction().Text()
	require.NoError(t, err)
	for name, change := range map[string][2]string{
		"the net":                   {`"net":-30`, `"net":-31`},
		"a number with a plus":      {`"charged":3,`, `"charged":+3,`},
		"spaces":                    {`,"net"`, `, "net"`},
		"another order":             {`"unit":"points","grade":"exact"`, `"grade":"exact","unit":"points"`},
		"a field that is unknown":   {`"grade":"local"`, `"grade":"local","more":1`},
		"a field twice":             {`"grade":"local"`, `"grade":"local","grade":"local"`},
		"a name in another case":    {`"grade":"local"`, `"Grade":"local"`},
		"another grade":             {`"grade":"local"`, `"grade":"sampled"`},
		"half a day":                {`"to":"2026-11-01"`, `"to":"2026-11-01T12:00:00Z"`},
		"before its period is over": {`"to":"2026-11-01"`, `"to":"2026-11-30"`},
		"an escape":                 {`"points"`, `"p\u006fints"`},
		"no tenant":                 {`"tenant":"ac\"me\\ ü"`, `"tenant":""`},
		"a control character":       {`"requests"`, `"requ\u0000ests"`},
		"another format":            {`statement.v1`, `statement.v2`},
		"a number twice as large":   {`9007199254740991`, `18014398509481982`},
		"a line twice":              {"{\"unit\":\"requests\"", "{\"unit\":\"points\",\"grade\":\"local\",\"charged\":3,\"givenBack\":0,\"net\":3}\n{\"unit\":\"requests\""},
		"it follows itself":         {`"previous":{"number":7`, `"previous":{"number":9`},
		"nothing is corrected":      {`,"corrects":{"number":7,"hash":"` + october().Hash().String() + `"}`, ""},
		"half a hash":               {october().Hash().String(), october().Hash().String()[:32]},
	} {
		wrong := strings.Replace(text, change[0], change[1], 1)
		require.NotEqual(t, text, wrong, name)
		signed, err := key.Sign(wrong)
		require.NoError(t, err, name)
		_, _, err = statement.Open(signed, key.Public())
		var problem *statement.Error
		require.ErrorAs(t, err, &problem, name)
	}
}

func TestStatementsAreHeldAgainstEachOther(t *testing.T) {
	t.Parallel()
	missing, err := statement.Check([]*statement.Statement{correction(), october()})
	require.NoError(t, err)
	require.Equal(t, []uint64{3}, missing)
	missing, err = statement.Check([]*statement.Statement{correction()})
	require.NoError(t, err)
	require.Equal(t, []uint64{7}, missing)
	_, err = statement.Check(nil)
	require.Error(t, err)
	for name, change := range map[string]func(first, second *statement.Statement){
		"another tenant":                func(_, second *statement.Statement) { second.Tenant = "globex" },
		"the same number":               func(first, _ *statement.Statement) { first.Number = 9 },
		"the first one was changed":     func(first, _ *statement.Statement) { first.Lines[0].Charged++ },
		"the difference is another":     func(_, second *statement.Statement) { second.Differences[0].GivenBack++ },
		"a difference is left out":      func(_, second *statement.Statement) { second.Differences = second.Differences[1:] },
		"another period":                func(_, second *statement.Statement) { second.From = second.From.AddDate(0, 0, 1) },
		"the one before is passed over": func(_, second *statement.Statement) { second.Previous.Number = 5 },
	} {
		first, second := october(), correction()
		change(first, second)
		_, err := statement.Check([]*statement.Statement{first, second})
		var problem *statement.Error
		require.ErrorAs(t, err, &problem, name)
	}
}

func TestADifferenceIsThatOfEachLine(t *testing.T) {
	t.Parallel()
	require.Equal(t, []statement.Line{
		{Unit: "points", Grade: "exact", GivenBack: 10},
		{Unit: "points", Field: "Query.a", Grade: "exact", Charged: -60, Calls: -6},
	}, correction().Differences)
	require.Empty(t, statement.Difference(october().Lines, october().Lines))
	require.Equal(t, october().Lines, statement.Difference(nil, october().Lines))
}

// FuzzOpen holds that nothing else is read than what is written.
func FuzzOpen(f *testing.F) {
	key := newKey(f)
	for _, s := range []*statement.Statement{october(), correction()} {
		text, err := s.Text()
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		signed, err := key.Sign(text)
		if err != nil {
			return
		}
		s, _, err := statement.Open(signed, key.Public())
		if err != nil {
			return
		}
		again, err := s.Text()
		require.NoError(t, err)
		require.Equal(t, text, again)
	})
}
