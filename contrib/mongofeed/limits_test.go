package mongofeed_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/mongofeed"
	"github.com/gqlgen-ratelimit/ratelimit/policy"
	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// shop is the document of docs/guide/feeds.md, as the shell of MongoDB writes it: numbers are floating-point ones.
func shop() bson.M {
	return bson.M{
		"service":        "shop",
		"general_limits": bson.M{"minute": 100.0, "day": 10000.0},
		"custom_limits": bson.M{
			"tenant:acme": bson.M{"minute": 500.0},
			"globex":      bson.M{"day": nil, "points": bson.M{"capacity": 5000.0, "per": "1h"}},
		},
		"last_updated": time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC),
	}
}

// translated is its policy.
const translated = `{"default":"general","tenants":{"acme":{"limits":{"minute":{"capacity":500,"per":"1m","unit":"requests"}}},` +
	`"globex":{"limits":{"day":null,"points":{"capacity":5000,"per":"1h"}}}},` +
	`"tiers":{"general":{"limits":{"day":{"capacity":10000,"per":"24h","unit":"requests"},"minute":{"capacity":100,"per":"1m","unit":"requests"}}}},` +
	`"version":1}`

func openLimits(t testing.TB, c *mongo.Collection) *mongofeed.Limits {
	t.Helper()
	limits, err := mongofeed.NewLimits(mongofeed.LimitsConfig{Collection: c, Service: "shop"})
	require.NoError(t, err)
	return limits
}

// replace makes the document that of the service.
func replace(t testing.TB, c *mongo.Collection, document any) {
	t.Helper()
	_, err := c.DeleteMany(t.Context(), bson.M{"service": "shop"})
	require.NoError(t, err)
	_, err = c.InsertOne(t.Context(), document)
	require.NoError(t, err)
}

func TestADocumentOfLimitsIsReadAsItStands(t *testing.T) {
	t.Parallel()
	c := connect(t, launch(t).URI)
	limits := openLimits(t, c)
	_, err := limits.Newest(t.Context(), policy.Head{})
	require.ErrorIs(t, err, policy.ErrEmpty)
	replace(t, c, shop())
	_, err = c.InsertOne(t.Context(), bson.M{"service": "bakery", "general_limits": 7})
	require.NoError(t, err)
	r, err := limits.Newest(t.Context(), policy.Head{Number: 4})
	require.NoError(t, err)
	require.JSONEq(t, translated, string(r.Document))
	require.Equal(t, policy.HashOf([]byte(translated)), r.Hash, "the same bytes for the same content")
	require.EqualValues(t, 5, r.Number)

	f := follow(t, limits, policy.Config{})
	amounts := func(tenant string) map[string]int64 {
		all := map[string]int64{}
		for _, b := range rules(f, tenant).Buckets {
			for _, limit := range b.Limits.All() {
				all[limit.Name] = limit.Capacity
			}
		}
		return all
	}
	require.Equal(t, map[string]int64{"minute": 500, "day": 10_000}, amounts("acme"))
	require.Equal(t, map[string]int64{"minute": 100, "points": 5000}, amounts("globex"))
	require.Equal(t, map[string]int64{"minute": 100, "day": 10_000}, amounts("initech"))
}

// TestChangesOfLimitsAreFoundByContentAndNeverByTheirTime has writers whose clocks are behind.
func TestChangesOfLimitsAreFoundByContentAndNeverByTheirTime(t *testing.T) {
	t.Parallel()
	c := connect(t, launch(t).URI)
	limits := openLimits(t, c)
	replace(t, c, shop())
	f := follow(t, limits, policy.Config{})
	first := f.Status()

	update := func(fields bson.M) {
		_, err := c.UpdateOne(t.Context(), bson.M{"service": "shop"}, bson.M{"$set": fields})
		require.NoError(t, err)
	}
	update(bson.M{"last_updated": time.Now()})
	require.NoError(t, f.Reload(t.Context()))
	require.Equal(t, first.Number, f.Status().Number, "a time that moves changes nothing")

	update(bson.M{"general_limits": bson.M{"minute": 200, "day": 1}, "last_updated": time.Now().Add(-time.Hour)})
	require.Eventually(t, func() bool { return f.Status().Number == first.Number+1 }, patience, time.Millisecond, "a clock that is behind hides nothing")
	update(bson.M{"general_limits": bson.M{"minute": 300, "day": 1}})
	require.Eventually(t, func() bool { return f.Status().Number == first.Number+2 }, patience, time.Millisecond)
	replace(t, c, shop())
	require.Eventually(t, func() bool {
		return f.Status().Hash == first.Hash
	}, patience, time.Millisecond, "who brings an old document back is obeyed")
}

func TestTheOrderOfKeysMeansNothing(t *testing.T) {
	t.Parallel()
	c := connect(t, launch(t).URI)
	limits := openLimits(t, c)
	replace(t, c, bson.D{
		{Key: "general_limits", Value: bson.D{{Key: "minute", Value: 1}, {Key: "hour", Value: int64(2)}}}, {Key: "service", Value: "shop"},
	})
	r, err := limits.Newest(t.Context(), policy.Head{})
	require.NoError(t, err)
	replace(t, c, bson.D{
		{Key: "service", Value: "shop"}, {Key: "general_limits", Value: bson.D{{Key: "hour", Value: 2.0}, {Key: "minute", Value: 1.0}}},
	})
	again, err := limits.Newest(t.Context(), r.Head())
	require.NoError(t, err)
	require.Nil(t, again)
}

func TestWhatCannotBeTranslatedIsRefusedWithEveryMistake(t *testing.T) {
	t.Parallel()
	c := connect(t, launch(t).URI)
	limits := openLimits(t, c)
	general := func(value any) bson.M { return bson.M{"service": "shop", "general_limits": value} }
	custom := func(value any) bson.M {
		return bson.M{"service": "shop", "general_limits": bson.M{"minute": 1}, "custom_limits": value}
	}
	for want, document := range map[string]bson.M{
		`"user_limits": nobody knows what this field says`:          {"service": "shop", "general_limits": bson.M{"minute": 1}, "user_limits": 7},
		`"general_limits": it is missing`:                           {"service": "shop"},
		`"general_limits": it is of the type`:                       general("100"),
		`"general_limits.minute": it is of the type string`:         general(bson.M{"minute": "100"}),
		`"general_limits.minute": it is of the type double`:         general(bson.M{"minute": 1.5}),
		`"general_limits.hour": it is of the type double`:           general(bson.M{"hour": 1e300}),
		`"general_limits.minute": it is of the type null`:           general(bson.M{"minute": nil}),
		`"general_limits.fortnight": a number is the requests`:      general(bson.M{"fortnight": 7}),
		`"general_limits.minute.per": it is of the type array`:      general(bson.M{"minute": bson.M{"capacity": 1, "per": bson.A{}}}),
		`"custom_limits": it is of the type array`:                  custom(bson.A{}),
		`"custom_limits.tenant:acme,lang:en": nobody knows where`:   custom(bson.M{"tenant:acme,lang:en": bson.M{"minute": 1}}),
		`"custom_limits.lang:en": nobody knows where a request has`: custom(bson.M{"lang:en": bson.M{"minute": 1}}),
		`"custom_limits.acme,lang:en": "acme" is no part of a key`:  custom(bson.M{"acme,lang:en": bson.M{"minute": 1}}),
		`the tenant is there twice`:                                 custom(bson.M{"acme": bson.M{"minute": 1}, "tenant:acme": bson.M{"minute": 1}}),
		`"custom_limits.acme": it is of the type`:                   custom(bson.M{"acme": 7}),
	} {
		replace(t, c, document)
		_, err := limits.Newest(t.Context(), policy.Head{Number: 3})
		var refused *policy.RefusedError
		require.ErrorAs(t, err, &refused, want)
		require.ErrorContains(t, err, want)
		require.Equal(t, policy.ReasonDocument, refused.Reason)
		require.EqualValues(t, 4, refused.Revision.Number)
	}
	replace(t, c, bson.M{"service": "shop", "general_limits": bson.M{"x": 1, "y": 1}, "z": 1})
	_, err := limits.Newest(t.Context(), policy.Head{})
	require.Equal(t, 2, strings.Count(err.Error(), "\n"), "every mistake at once: %v", err)

	// What a limit has is for the compiler of policies to say.
	replace(t, c, general(bson.M{"minute": bson.M{"capacity": 1, "every": "1m"}}))
	r, err := limits.Newest(t.Context(), policy.Head{})
	require.NoError(t, err)
	_, err = tiers.Load(r.Document, 1)
	require.ErrorContains(t, err, "every")

	replace(t, c, shop())
	_, err = c.InsertOne(t.Context(), shop())
	require.NoError(t, err)
	_, err = limits.Newest(t.Context(), policy.Head{})
	require.ErrorContains(t, err, "two documents")
}

func TestOtherNamesOfFieldsAreRead(t *testing.T) {
	t.Parallel()
	c := connect(t, launch(t).URI)
	limits, err := mongofeed.NewLimits(mongofeed.LimitsConfig{
		Collection: c, Service: "shop", Ignore: []string{"owner"},
		Fields: mongofeed.Fields{Service: "svc", General: "limits", Custom: "overrides", Updated: "at"},
	})
	require.NoError(t, err)
	document := shop()
	_, err = c.InsertOne(t.Context(), bson.M{
		"svc": "shop", "limits": document["general_limits"], "overrides": document["custom_limits"], "at": 7, "owner": "ada",
	})
	require.NoError(t, err)
	r, err := limits.Newest(t.Context(), policy.Head{})
	require.NoError(t, err)
	require.JSONEq(t, translated, string(r.Document))
	require.Equal(t, policy.HashOf([]byte(translated)), r.Hash, "the same bytes for the same content")
}
