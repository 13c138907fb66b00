package mongofeed_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/mongofeed"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// lang says that requests name their language.
type lang string

// Parameter implements tiers.Parameters.
func (l lang) Parameter(p tiers.Parameter) (string, bool) {
	return string(l), p.Header == "Accept-Language"
}

// TestKeysOfSeveralPartsAreCustomLimits reads no server: what a document means is a matter of this process.
func TestKeysOfSeveralPartsAreCustomLimits(t *testing.T) {
	t.Parallel()
	translator := mongofeed.Translator(map[string]tiers.Parameter{"lang": {Header: "Accept-Language"}})
	translate := func(custom bson.M) ([]byte, error) {
		raw, err := bson.Marshal(bson.M{"service": "shop", "general_limits": bson.M{"minute": 100, "day": 10_000}, "custom_limits": custom})
		require.NoError(t, err)
		return translator(raw)
	}
	document, err := translate(bson.M{
		"tenant:acme":         bson.M{"minute": 500},
		"tenant:acme,lang:en": bson.M{"minute": 700, "day": nil},
		"lang:de":             bson.M{"minute": 50},
		"lang:fr,user:bot":    bson.M{"minute": 5},
	})
	require.NoError(t, err)
	again, err := translate(bson.M{
		"lang:fr,user:bot": bson.M{"minute": 5}, "lang:de": bson.M{"minute": 50.0},
		"lang:en,tenant:acme": bson.M{"day": nil, "minute": 700.0}, "acme": bson.M{"minute": 500.0},
	})
	require.NoError(t, err)
	require.Equal(t, string(document), string(again), "the order of parts means nothing")
	s, err := tiers.Load(document, 1)
	require.NoError(t, err, string(document))
	for _, test := range []struct {
		tenant, user, lang string
		owner              string
		want               map[string]int64
	}{
		{"acme", "", "xx", "", map[string]int64{"minute": 500, "day": 10_000}},
		{"acme", "", "en", "lang:en", map[string]int64{"minute": 700}},
		{"acme", "", "de", "lang:de", map[string]int64{"minute": 50, "day": 10_000}},
		{"other", "", "en", "", map[string]int64{"minute": 100, "day": 10_000}},
		{"other", "bot", "fr", "lang:fr,user:bot", map[string]int64{"minute": 5, "day": 10_000}},
		{"other", "ann", "fr", "", map[string]int64{"minute": 100, "day": 10_000}},
	} {
		rules := s.Rules(tiers.Subject{Tenant: test.tenant, User: test.user}, tiers.Selection{Parameters: lang(test.lang)})
		require.Len(t, rules.Buckets, 1, "one in the place of the other")
		require.Equal(t, test.owner, rules.Buckets[0].Owner.Name)
		got := map[string]int64{}
		for _, limit := range rules.Buckets[0].Limits.All() {
			got[limit.Name] = limit.Capacity
		}
		require.Equal(t, test.want, got, "%+v", test)
	}

	for want, custom := range map[string]bson.M{
		"the tenant is there twice":                       {"acme": bson.M{"minute": 1}, "tenant:acme": bson.M{"minute": 1}},
		"the key is there twice":                          {"lang:en,tenant:acme": bson.M{"minute": 1}, "tenant:acme,lang:en": bson.M{"minute": 1}},
		`nobody knows where a request has "shop"`:         {"shop:1": bson.M{"minute": 1}},
		`has "lang" twice`:                                {"lang:en,lang:de": bson.M{"minute": 1}},
		`"custom_limits.acme,lang:en": "acme" is no part`: {"acme,lang:en": bson.M{"minute": 1}},
	} {
		_, err := translate(custom)
		require.ErrorContains(t, err, want)
	}
}
