package main

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gqlgen-ratelimit/ratelimit/policy"
)

func TestWhatIsPulledIsThereByteForByteAndIsPushedOnWhatItWas(t *testing.T) {
	t.Parallel()
	odd := strings.ReplaceAll(document(100), "\n", "\r\n") + "# ü\r\n  "
	c := newControl(t, document(50), odd)
	require.Equal(t, "FOLDER/p.yaml is revision 2, published by ada at 2026-11-22T03:01:00Z: why\n", c.want(exitOK, "policy pull FOLDER/p.yaml"))
	require.Equal(t, odd, c.read("p.yaml"))
	require.JSONEq(t, fmt.Sprintf(`{"revision": 2, "hash": "%s", "author": "ada", "reason": "why", "published": "2026-11-22T03:01:00Z"}`, policy.HashOf([]byte(odd))), c.read("p.yaml.revision"))
	require.Contains(t, c.want(exitOK, "policy pull FOLDER/p.yaml"), "is already revision 2")
	require.Contains(t, c.want(exitOK, "policy push -reason r FOLDER/p.yaml"), "is already revision 2")
	c.write("p.yaml", odd+"# mine\r\n")
	require.Contains(t, c.want(exitOK, "policy push -ticket T-1 FOLDER/p.yaml", "-reason", "für acme & co"), "FOLDER/p.yaml is revision 3, published by me at 2026-11-22T03:02:00Z: für acme & co\n")
	require.Equal(t, odd+"# mine\r\n", string(c.revisions[2].Document))
	require.Contains(t, c.read("p.yaml.revision"), `"revision": 3`)
	put := c.seen[len(c.seen)-1]
	require.Equal(t, []string{"T-1"}, put.URL.Query()["ticket"])
	require.NotEmpty(t, put.Header.Get("Idempotency-Key"))
	c.want(exitOK, "policy pull -revision 1 FOLDER/old.yaml")
	require.Equal(t, document(50), c.read("old.yaml"))
	require.NoFileExists(t, filepath.Join(c.folder, "old.yaml.revision"))
}

func TestTheFirstPolicyIsPushedWithoutABase(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	require.Contains(t, c.want(exitFound, "policy pull FOLDER/p.yaml"), "no policy yet")
	c.write("p.yaml", document(100))
	require.Contains(t, c.want(exitOK, "policy push -reason first FOLDER/p.yaml"), "is revision 1")
}

func TestAPullLeavesWhatSomebodyHasChanged(t *testing.T) {
	t.Parallel()
	c := newControl(t, document(50), document(100))
	c.write("p.yaml", document(70))
	require.Contains(t, c.want(exitFound, "policy pull FOLDER/p.yaml"), "has changes that the daemon does not have")
	require.Equal(t, document(70), c.read("p.yaml"))
	require.NoFileExists(t, filepath.Join(c.folder, "p.yaml.revision"))
	// An earlier revision is no change, whether or not it was pulled.
	c.write("p.yaml", document(50))
	c.want(exitOK, "policy pull FOLDER/p.yaml")
	require.Equal(t, document(100), c.read("p.yaml"))
	c.write("p.yaml", document(70))
	c.want(exitOK, "policy pull -force FOLDER/p.yaml")
	require.Equal(t, document(100), c.read("p.yaml"))
	files, err := os.ReadDir(c.folder)
	require.NoError(t, err)
	require.Len(t, files, 2, "nothing is left beside them")
}

func TestWhoPushesAfterSomebodyElseReadsWhoAndWhatAndHowToGoOn(t *testing.T) {
	t.Parallel()
	c := newControl(t, document(50))
	c.want(exitOK, "policy pull FOLDER/p.yaml")
	c.publish(document(60), "bob", "incident 17")
	c.publish(document(70), "eve", "incident 17, more")
	c.write("p.yaml", document(55))
	require.Equal(t, `Nothing was published: FOLDER/p.yaml is based on revision 1, and the daemon has revision 3.

REVISION  PUBLISHED             BY   REASON
3         2026-11-22T03:02:00Z  eve  incident 17, more
2         2026-11-22T03:01:00Z  bob  incident 17

WHOSE      WHAT                 OLD                      NEW
tier free  tenant limit minute  50 points per minute  →  70 points per minute

To go on, merge both, look at the result, and push it:

    gqlratelimit policy pull -revision 3 theirs.yaml
    gqlratelimit policy pull -revision 1 base.yaml
    git merge-file FOLDER/p.yaml base.yaml theirs.yaml
    gqlratelimit policy push -expect 3 -reason TEXT FOLDER/p.yaml
`, c.want(exitFound, "policy push -reason r FOLDER/p.yaml"))
	require.Len(t, c.revisions, 3)
	require.Contains(t, c.want(exitOK, "policy push -expect 3 -reason r FOLDER/p.yaml"), "is revision 4")
	// Somebody may be faster after it has looked.
	c.write("p.yaml", document(56))
	c.problem("PUT /v1/ratelimit/policies", http.StatusPreconditionFailed, `{"title": "Something else is there"}`)
	require.Contains(t, c.want(exitFound, "policy push -expect 4 -reason r FOLDER/p.yaml"), "is based on revision 4")
}

func TestTheBaseOfAPushIsItsContentAndNotItsNumber(t *testing.T) {
	t.Parallel()
	c := newControl(t, document(50), document(60), document(50))
	c.write("base.yaml", document(50))
	c.write("p.yaml", document(55))
	require.Contains(t, c.want(exitOK, "policy push -base FOLDER/base.yaml -reason r FOLDER/p.yaml"), "is revision 4")
	c.write("p.yaml", document(56))
	require.Contains(t, c.want(exitFound, "policy push -base FOLDER/base.yaml -reason r FOLDER/p.yaml"), "is based on revision 3, and the daemon has revision 4")
	c.write("base.yaml", document(1))
	require.Contains(t, c.want(exitFound, "policy push -base FOLDER/base.yaml -reason r FOLDER/p.yaml"), "is based on no revision that the daemon knows")
	c.write("q.yaml", document(57))
	require.Contains(t, c.want(exitUsage, "policy push -reason r FOLDER/q.yaml"), "nobody knows what FOLDER/q.yaml began with: pull it first")
	c.write("p.yaml.revision", "{")
	require.Contains(t, c.want(exitUsage, "policy push -reason r FOLDER/p.yaml"), "is not what policy pull writes")
	require.Contains(t, c.want(exitUsage, "policy push -base x -expect 1 -reason r FOLDER/p.yaml"), "one of -base and -expect")
	require.Contains(t, c.want(exitUsage, "policy push FOLDER/p.yaml"), "say why")
	require.Len(t, c.revisions, 4)
}

func TestAPolicyWithMistakesIsPushedToNobody(t *testing.T) {
	t.Parallel()
	c := newControl(t, document(50))
	c.write("p.yaml", strings.ReplaceAll(document(50), "capacity: 50", "capacity: -1"))
	require.Contains(t, c.want(exitFound, "policy push -expect 1 -reason r FOLDER/p.yaml"), "FOLDER/p.yaml:3:34: error: tiers.free.limits.minute.capacity")
	require.Empty(t, c.seen, "nobody is asked")
	// Another version of the daemon may find more.
	c.write("p.yaml", document(51))
	c.problem("PUT /v1/ratelimit/policies", http.StatusUnprocessableEntity, `{"title": "The document is no policy", "mistakes": [{"line": 2, "column": 1, "path": "default", "problem": "too new"}]}`)
	require.Equal(t, "FOLDER/p.yaml:2:1: error: default: too new\nNothing was published.\n", c.want(exitFound, "policy push -expect 1 -reason r FOLDER/p.yaml"))
}

func TestTheTokenIsSentToNobodyWhoCouldReadItAndShownNowhere(t *testing.T) {
	t.Parallel()
	c := newControl(t, document(50))
	other := newControl(t, document(60))
	for url, says := range map[string]string{
		"http://limits.example.org":        "without TLS",
		"http://10.0.0.7:8470":             "without TLS",
		"https://u:" + secretToken + "@h":  "more than a host",
		"https://h/?token=" + secretToken:  "more than a host",
		"ftp://h":                          "is none",
		"h:8470":                           "is none",
		"https://" + secretToken + "\x7f/": "is none",
	} {
		require.Contains(t, c.want(exitUsage, "policy pull FOLDER/p.yaml -daemon", url), says)
	}
	c.answer("GET /v1/ratelimit/policies", http.StatusTemporaryRedirect, http.Header{"Location": {other.server.URL + "/v1/ratelimit/policies"}}, "")
	require.Contains(t, c.want(exitUsage, "policy pull FOLDER/p.yaml"), "307")
	require.Empty(t, other.seen, "a redirect is not followed")

	o := &operator{env: map[string]string{"RATELIMIT_DAEMON": c.server.URL}}
	code, _, stderr := o.run("policy pull " + c.folder + "/p.yaml")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "nobody is named who asks")
	c.write("token", secretToken+"\n")
	code, _, stderr = o.run("policy pull " + c.folder + "/p.yaml -token-file " + c.folder + "/token")
	require.Equal(t, exitOK, code, stderr)
	c.write("token", secretToken+"\nX-Other: header")
	code, _, stderr = o.run("policy pull " + c.folder + "/p.yaml -token-file " + c.folder + "/token")
	require.Equal(t, exitUsage, code)
	require.NotContains(t, stderr, secretToken)
}

func TestWhatADaemonCannotDoIsSaidInSentences(t *testing.T) {
	t.Parallel()
	c := newControl(t, document(50))
	const get = "GET /v1/ratelimit/policies"
	c.problem(get, http.StatusForbidden, `{"title": "You may not do this", "detail": "it takes the role viewer\u001b[2J", "request": "abc"}`)
	require.Equal(t, "the daemon says: You may not do this. it takes the role viewer?[2J (request abc)\n", c.want(exitUsage, "policy pull FOLDER/p.yaml"))
	c.answer(get, http.StatusBadGateway, http.Header{"Content-Type": {"text/html"}}, "<html>")
	require.Contains(t, c.want(exitUsage, "policy pull FOLDER/p.yaml"), "is it another address, or something in front of it?")
	c.answer(get, http.StatusOK, nil, "something else")
	require.Contains(t, c.want(exitUsage, "policy pull FOLDER/p.yaml"), "something else than a revision")
	c.answer(get, http.StatusOK, nil, strings.Repeat("x", 18<<20))
	require.Contains(t, c.want(exitUsage, "policy pull FOLDER/p.yaml"), "more than")
	c.problem(get, http.StatusTooManyRequests, `{"title": "Too many requests"}`)
	require.Contains(t, c.want(exitUsage, "policy pull FOLDER/p.yaml"), "Too many requests")
	c.write("p.yaml", document(51))
	c.problem("PUT /v1/ratelimit/policies", http.StatusServiceUnavailable, `{"title": "Nobody knows whether it was done"}`)
	require.Contains(t, c.want(exitUsage, "policy push -expect 1 -reason r FOLDER/p.yaml"), "Nobody knows", "what changes something is not repeated by itself")
	c.server.Close()
	require.Contains(t, c.want(exitUsage, "policy pull FOLDER/p.yaml"), "cannot be asked")
}

func TestADaemonOfAnOwnAuthorityIsTrustedWhereItIsNamed(t *testing.T) {
	t.Parallel()
	c := newControl(t, document(50))
	server := httptest.NewUnstartedServer(c)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	c.write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	o := &operator{env: map[string]string{"RATELIMIT_DAEMON": server.URL, "RATELIMIT_TOKEN": secretToken}}
	code, _, stderr := o.run("policy pull " + c.folder + "/p.yaml")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "certificate signed by unknown authority")
	code, stdout, stderr := o.run("policy pull " + c.folder + "/p.yaml -daemon-ca " + c.folder + "/ca.pem")
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "p.yaml is revision 1, published by ada")
}
