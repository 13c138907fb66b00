package prometheus_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/contrib/prometheus/promtest"
)

func TestAlertsAreSilentInAPrometheusWhereSharesAreHighAndHardlyAnybodyAsks(t *testing.T) {
	t.Parallel()
	quiet := promtest.NewShop(t, promtest.ShopConfig{Report: promtest.Nowhere})
	cut := promtest.NewShop(t, promtest.ShopConfig{})
	cut.StoreAway(true)
	p := scrapes(t, quiet, cut)
	sent := 0
	// What is refused is all that is asked for, three operations in four seconds: each share is one, and each floor is above.
	require.Eventually(t, func() bool {
		if sent%4 == 3 {
			cut.Ask(t, "open-1", promtest.Users)
		} else {
			quiet.Ask(t, fmt.Sprint("tiny-", sent%10), promtest.Users)
		}
		sent++
		return sent > 30
	}, 5*time.Minute, 1500*time.Millisecond)
	for _, share := range []string{
		`ratelimit:tenant_refused:ratio_rate5m > 0.3`,
		`ratelimit:without_store:ratio_rate5m > 0.001`,
	} {
		series, err := p.Query(share)
		require.NoError(t, err)
		require.NotEmpty(t, series, "%s: nothing but the floor keeps the alert silent", share)
	}
	fired, err := p.Fired()
	require.NoError(t, err)
	require.Subset(t, []string{"RatelimitNoReport", "RatelimitStoreAway", "RatelimitStoreAwayLong"}, fired, "those that have no floor")
}

// backfilled are the samples of hours as a file that promtool makes blocks of, one a minute, of series that grow by so much in a second.
func backfilled(series []string, hours int) string {
	var text strings.Builder
	end := time.Now().Truncate(time.Minute)
	begin := end.Add(-time.Duration(hours) * time.Hour)
	slices.Sort(series)
	metric := ""
	for _, one := range series {
		name, rate := strings.Split(one, " ")[0], 0.
		_, _ = fmt.Sscan(strings.Split(one, " ")[2], &rate)
		if of, _, _ := strings.Cut(name, "{"); of != metric {
			metric = of
			fmt.Fprintf(&text, "# TYPE %s unknown\n", metric)
		}
		for at := begin; !at.After(end); at = at.Add(time.Minute) {
			fmt.Fprintf(&text, "%s %g %d\n", name, rate*at.Sub(begin).Seconds(), at.Unix())
		}
	}
	return text.String() + "# EOF\n"
}

func TestAlertsOnHoursFireInAPrometheusThatHasTheHours(t *testing.T) {
	t.Parallel()
	var series []string
	add := func(field string, difference, count float64) {
		for _, one := range priced(difference, count) {
			series = append(series, strings.ReplaceAll(one, "Query.users", field))
		}
	}
	add("Query.high", 51, 1)
	add("Query.fair", 49, 1)
	add("Query.highAndRare", 51, 0.09)
	add("Query.low", -11, 1)
	add("Query.nearlyFair", -9, 1)
	add("Query.lowAndRare", -50, 0.09)
	folder := t.TempDir()
	file, data := filepath.Join(folder, "samples"), filepath.Join(folder, "data")
	require.NoError(t, os.WriteFile(file, []byte(backfilled(series, 3)), 0o600))
	promtool(t, "tsdb", "create-blocks-from", "openmetrics", file, data)

	// The hour that is looked at is a whole one. For how long it has to be so begins when the server starts, and is shorter.
	rules := regexp.MustCompile(`for: \d+[mh]`).ReplaceAllString(ruleText(t), "for: 2s")
	p := promtest.Start(t, promtest.Config{Rules: rules, Data: data})
	fields := func() (all []string) {
		for name, alerts := range p.Firing() {
			for _, a := range alerts {
				all = append(all, name+" "+a.Labels["ratelimit_root_field"])
			}
		}
		slices.Sort(all)
		return all
	}
	want := []string{"RatelimitPriceTooHigh Query.high", "RatelimitPriceTooLow Query.low"}
	require.Eventually(t, func() bool { return slices.Equal(fields(), want) }, time.Minute, 200*time.Millisecond)
	priced, err := p.Query(`ratelimit:priced:rate1h`)
	require.NoError(t, err)
	require.Len(t, priced, 6)
	fired, err := p.Fired()
	require.NoError(t, err)
	require.Len(t, fired, 2)
}
