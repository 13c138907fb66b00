package tiers_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

func TestAKeyHasOneCanonicalSpelling(t *testing.T) {
	t.Parallel()
	for spelled, want := range map[string]string{
		"tenant:acme,lang:en":      "lang:en,tenant:acme",
		"lang:en":                  "lang:en",
		"b:2,a:1,c:3":              "a:1,b:2,c:3",
		"url:http://x/y?z=1":       "url:http://x/y?z=1",
		"list:a%2Cb,rate:100%25":   "list:a%2Cb,rate:100%25",
		"list:a%2cb":               "list:a%2Cb",
		"word:%41%62c":             "word:Abc",
		"blank: a b ,empty.name:-": "blank: a b ,empty.name:-",
	} {
		key, err := tiers.ParseKey(spelled)
		require.NoError(t, err, spelled)
		require.Equal(t, want, key.String())
	}
	key, err := tiers.ParseKey("tenant:a%2Cb,lang:en")
	require.NoError(t, err)
	require.Equal(t, []string{"lang", "tenant"}, key.Names())
	require.Equal(t, "a,b", key.Value("tenant"))
	require.Empty(t, key.Value("user"))
	require.Equal(t, "lang:en", key.Without("tenant").String())
	require.Equal(t, "lang:en,tenant:a%2Cb", key.String())
}

func TestWhatIsNoKeySaysWhy(t *testing.T) {
	t.Parallel()
	for spelled, want := range map[string]string{
		"":                                    "is no part of a key",
		"acme":                                "is no part of a key",
		":acme":                               "is no part of a key",
		"a b:c":                               "is no part of a key",
		"lang:":                               "has no value",
		"lang:en,":                            "is no part of a key",
		"lang:en,lang:de":                     "has \"lang\" twice",
		"lang:%":                              "two hexadecimal digits",
		"lang:%4":                             "two hexadecimal digits",
		"lang:%zz":                            "two hexadecimal digits",
		"a:1,b:2,c:3,d:4,e:5,f:6,g:7,h:8,i:9": "9 parts",
		"lang:" + strings.Repeat("x", 252):    "257 bytes",
		"lang:" + strings.Repeat("%2C", 100):  "305 bytes",
		strings.Repeat("x", 10_000):           "10000 bytes",
		strings.Repeat("x", 65) + ":y":        "is no part of a key",
	} {
		_, err := tiers.ParseKey(spelled)
		require.ErrorContains(t, err, want, spelled)
	}
	_, err := tiers.ParseKey("lang:" + strings.Repeat("x", 251))
	require.NoError(t, err)
}

// FuzzAKeyIsWhatItSpells holds the parser to the builder: who reads the canonical spelling has the same key, and keys that differ
// in a part are spelled differently.
func FuzzAKeyIsWhatItSpells(f *testing.F) {
	for _, seed := range []string{"tenant:acme,lang:en", "a:%25,b:%2C", "a:,b", "a:b:c,d:%00", "a:%2", strings.Repeat("a:b,", 9)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, spelled string) {
		key, err := tiers.ParseKey(spelled)
		if err != nil {
			return
		}
		canonical := key.String()
		require.LessOrEqual(t, len(canonical), 256)
		again, err := tiers.ParseKey(canonical)
		require.NoError(t, err)
		require.Equal(t, key, again)
		require.Equal(t, canonical, again.String())
		names := key.Names()
		require.LessOrEqual(t, len(names), 8)
		require.NotEmpty(t, names)

		// A request that carries the values of the key, and no other, builds it.
		subject := tiers.Subject{Tenant: key.Value("tenant"), Team: key.Value("team"), User: key.Value("user")}
		parameters := map[string]tiers.Parameter{}
		for _, name := range names {
			if !strings.Contains(" tenant team user tier sha256 ", " "+name+" ") {
				parameters[name] = tiers.Parameter{Header: name}
			}
		}
		policy := tiers.Policy{
			Default: "free", Tiers: map[string]tiers.Tier{"free": {MaxCost: 5}}, Parameters: parameters,
			Custom: map[string]tiers.CustomRule{canonical: {Limits: map[string]*tiers.Limit{"minute": {Capacity: 5, Per: tiers.Minute}}}},
		}
		s, err := tiers.Compile(policy)
		if err != nil || key.Value("tier") != "" && key.Value("tier") != "free" {
			return
		}
		carried := headers{}
		for name := range parameters {
			carried[name] = key.Value(name)
		}
		rules := s.Rules(subject, tiers.Selection{Parameters: carried})
		require.Len(t, rules.Buckets, 1, canonical)
		for name := range parameters {
			carried[name] += "x"
			rules := s.Rules(subject, tiers.Selection{Parameters: carried})
			require.Empty(t, rules.Buckets, "another value is another key")
			break
		}
	})
}

// headers are parameters that come from headers.
type headers map[string]string

func (h headers) Parameter(p tiers.Parameter) (string, bool) {
	value, ok := h[p.Header]
	return value, ok
}
