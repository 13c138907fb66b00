package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/tiers"
)

// previewOf is what the daemon answers where so many of a hundred tenants and operations are newly refused.
func previewOf(newly int, halts bool, more string) string {
	return fmt.Sprintf(`{"against": 1, "halts": %t, "lowers": true, "secondPerson": %t, "reach": "it reaches far", %s
		"report": {"share": 0.5, "total": {"operations": 100, "after": %d, "newlyRefused": %d},
			"tenants": {"seen": 100, "newlyRefused": %d, "share": %g, "low": 0, "high": 0.1}, "users": {"seen": 100, "share": 0},
			"rows": [{"tenant": "acme", "tier": "free", "operations": 9, "after": %d, "newlyRefused": %d, "by": [{"level": "user", "limit": "minute", "n": 2}, {"level": "operation", "owner": "Query.*", "limit": "hour", "n": 1}]}]}}`,
		halts, halts, more, newly, newly, newly, float64(newly)/100, newly, newly)
}

func TestAPlanExitsByWhomThePolicyWouldNewlyRefuse(t *testing.T) {
	t.Parallel()
	c := newControl(t, document(50))
	c.write("p.yaml", document(40))
	const plan = "policy plan -new FOLDER/p.yaml"
	for name, e := range map[string]struct {
		preview, flags string
		code           int
		says           string
	}{
		"nobody":             {previewOf(0, false, ""), "", exitOK, "Of 100 recorded operations 0 would be newly refused"},
		"somebody":           {previewOf(2, false, ""), "", exitFound, "2 would be newly refused: of 2% (0% to 10%) of tenants"},
		"few enough":         {previewOf(2, false, ""), " -max-newly-refused 2%", exitOK, "user/minute 2, Query.*/hour 1"},
		"too many":           {previewOf(3, false, ""), " -max-newly-refused 2%", exitFound, ""},
		"a halt":             {previewOf(6, true, `"remark": "more than 5 % of tenants are newly refused",`), " -max-newly-refused 100%", exitHalt, "More than 5 % of tenants are newly refused.\nIt takes a second person: it reaches far.\n"},
		"nothing recorded":   {`{"against": 1, "lowers": true, "missing": "nothing was recorded", "report": {}}`, "", exitFound, "Nobody knows who would newly be refused: nothing was recorded."},
		"nothing is lowered": {`{"against": 1, "missing": "nothing was recorded", "report": {}}`, "", exitOK, ""},
		"the first":          {`{"lowers": true, "missing": "no policy was published yet", "report": {}}`, "", exitOK, ""},
		"no preview":         {"", " -no-preview", exitOK, "tenant limit minute  50 points per minute  →  40 points per minute"},
		"misfits":            {previewOf(0, false, `"misfits": {"total": 3, "tenants": [{"tenant": "acme", "problem": "there is no tier pro"}]},`), "", exitOK, "The records of 3 tenants would stop fitting"},
	} {
		c.preview = e.preview
		require.Contains(t, c.want(e.code, plan+e.flags), e.says, name)
	}
	c.preview = previewOf(2, false, "")
	_, stdout, _ := c.run(plan + " -json")
	var told struct {
		Failed  bool
		Old     string
		Changes []struct{ What string }
		Preview struct {
			Report struct{ Rows []struct{ NewlyRefused int } }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &told))
	require.True(t, told.Failed)
	require.Equal(t, "revision 1 of the daemon", told.Old)
	require.Equal(t, 2, told.Preview.Report.Rows[0].NewlyRefused)
}

func TestAPlanSaysThatTheDaemonHasSomethingElseThanTheChangeBeganWith(t *testing.T) {
	t.Parallel()
	c := newControl(t, document(50), document(60))
	c.write("p.yaml", document(70))
	c.write("base.yaml", document(50))
	require.Contains(t, c.want(exitFound, "policy plan -new FOLDER/p.yaml -base FOLDER/base.yaml"), "pull it, and merge both")
	c.write("base.yaml", document(60))
	c.want(exitOK, "policy plan -new FOLDER/p.yaml -base FOLDER/base.yaml")
	// What was pushed already is no conflict.
	c.write("p.yaml", document(60))
	c.write("base.yaml", document(50))
	c.want(exitOK, "policy plan -new FOLDER/p.yaml -base FOLDER/base.yaml")
	c.write("p.yaml", "version: 1\ndefault: none\ntiers: {free: {unlimited: true}}\n")
	require.Contains(t, c.want(exitFound, "policy plan -new FOLDER/p.yaml"), `error: default: there is no tier "none"`)
}

func TestAPlanWithRecordsAsksTheDaemonForThePolicyAlone(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("cmd/gqlratelimit/testdata/live/policy.yaml")
	require.NoError(t, err)
	c := newControl(t, string(text))
	const plan = "policy plan -new cmd/gqlratelimit/testdata/live/next.yaml -records cmd/gqlratelimit/testdata/live/costs.jsonl"
	require.Contains(t, c.want(exitFound, plan), "Of 120 recorded operations 24 would be newly refused")
	c.want(exitOK, plan+" -max-newly-refused 20%")
	for _, r := range c.seen {
		require.Equal(t, http.MethodGet, r.Method)
	}
	// A file that is named beats the daemon of the environment, and so does a Redis.
	require.Contains(t, c.want(exitOK, "policy plan -old cmd/gqlratelimit/testdata/live/policy.yaml -new cmd/gqlratelimit/testdata/live/policy.yaml"), "No limit changes.")
	require.Contains(t, c.want(exitUsage, "policy plan -redis 127.0.0.1:1 -timeout 1s -new cmd/gqlratelimit/testdata/live/policy.yaml"), "Redis cannot be reached")
	require.Contains(t, c.want(exitUsage, "policy plan -old cmd/gqlratelimit/testdata/live/policy.yaml -new cmd/gqlratelimit/testdata/live/policy.yaml -max-newly-refused 1%"), "needs recorded costs")
}

func TestDuringARolloutNothingIsPulledOrPushedOverIt(t *testing.T) {
	t.Parallel()
	staged, err := tiers.StageDocument([]byte(document(50)), []byte(document(40)), tiers.Stage{ID: "r1", Seed: "s", Percent: 100})
	require.NoError(t, err)
	c := newControl(t, document(50), string(staged))
	c.write("p.yaml", document(50))
	require.Contains(t, c.want(exitFound, "policy pull FOLDER/p.yaml"), "A roll-out is under way: revision 2 of the daemon has two policies")
	require.Equal(t, document(50), c.read("p.yaml"))
	c.want(exitOK, "policy pull -revision 2 FOLDER/both.json")
	require.Equal(t, string(staged), c.read("both.json"))
	c.write("base.yaml", document(50))
	c.write("p.yaml", document(30))
	require.Contains(t, c.want(exitFound, "policy push -base FOLDER/base.yaml -reason r FOLDER/p.yaml"), "Wait until it has ended, or abort it, and push again.")
	require.Contains(t, c.want(exitOK, "policy plan -no-preview -new FOLDER/p.yaml"), `From revision 2 of the daemon, which is in a roll-out: its policy of now to FOLDER/p.yaml:
WHOSE      WHAT                 OLD                      NEW
tier free  tenant limit minute  50 points per minute  →  30 points per minute
`)
}
