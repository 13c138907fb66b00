package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatListWritesSetReadsAgain(t *testing.T) {
	t.Parallel()
	o, _ := newOperator(t)
	for _, line := range []string{
		"override set -tenant acme -limit minute -capacity 5000 -for 2h -reason one",
		"override set -tenant acme -operation Mutation.createOrder -mode shadow -forever -reason two",
		"override set -tenant acme -user ada -operation Mutation.login -limit hour -capacity 99 -per 90m -for 3h -reason three",
		"block -tenant acme -user mallory -until 2030-01-01T00:00:00Z -reason four",
	} {
		code, stdout, stderr := o.run(line + " -timeout 1m")
		require.Equal(t, exitOK, code, "%s%s%s", line, stdout, stderr)
	}
	list := func() (text string, records []map[string]any) {
		code, stdout, stderr := o.run("override list -tenant acme -json -timeout 1m")
		require.Equal(t, exitOK, code, stderr)
		var out struct{ Records []map[string]any }
		require.NoError(t, json.Unmarshal([]byte(stdout), &out))
		for _, record := range out.Records {
			delete(record, "setAt")
		}
		return stdout, out.Records
	}
	written, before := list()
	require.Len(t, before, 4)
	file := filepath.Join(t.TempDir(), "records.json")
	require.NoError(t, os.WriteFile(file, []byte(written), 0o600))

	code, _, stderr := o.run("override clear -tenant acme -reason over -timeout 1m")
	require.Equal(t, exitOK, code, stderr)
	code, stdout, stderr := o.run("override set -forever -reason again -timeout 1m -file", file)
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "4 override records are set, of which 0 replaced another.")
	_, after := list()
	require.ElementsMatch(t, before, after)
}

func TestOfAFileWithAMistakeNothingIsSetAndEachMistakeIsNamed(t *testing.T) {
	t.Parallel()
	o, _ := newOperator(t)
	dir := files(t, map[string]string{
		"names.json": `{"version": 1, "records": [
			{"tenant": "acme", "limit": "minute", "capacity": 5000},
			{"tenant": "acme", "limit": "minuet", "capacity": 5000},
			{"tenant": "globex", "limit": "minute", "capacity": -1},
			{"tenant": "acme", "limit": "minute", "capacity": 5, "expires": "2020-01-01T00:00:00Z"}]}`,
		"unknown.json": "{\"version\": 1, \"records\": [\n{\"tenant\": \"acme\", \"capcity\": 1}]}",
		"many.json":    `{"version": 1, "records": [` + strings.Repeat(`{"tenant": "acme", "mode": "shadow"},`, 10_000) + `{"tenant": "acme", "mode": "shadow"}]}`,
		"none.json":    `{"version": 1}`,
		"two.json":     `{"version": 1, "records": [{"tenant": "acme", "mode": "shadow"}]} {}`,
	})
	for name, want := range map[string][]string{
		"names.json": {
			`record 2, of acme: there is no limit of acme "minuet": did you mean "minute"?`, "record 3, of globex: capacity", "nothing was set",
		},
		"unknown.json": {"unknown.json:2: no records", "capcity"},
		"many.json":    {"10001 records; 1 to 10000 fit"},
		"none.json":    {"0 records"},
		"two.json":     {"more than one object"},
		"missing.json": {"missing.json: cannot be read"},
	} {
		code, _, stderr := o.run("override set -for 1h -reason r -timeout 1m -file", filepath.Join(dir, name))
		require.Equal(t, exitUsage, code, name)
		for _, text := range want {
			require.Contains(t, stderr, text)
		}
	}
	_, stdout, _ := o.run("override list -tenant acme -timeout 1m")
	require.Contains(t, stdout, "acme has no override records.")
}

func TestOfAFileRecordsThatHaveExpiredAreLeftOutAndTheOthersAreSet(t *testing.T) {
	t.Parallel()
	o, _ := newOperator(t)
	dir := files(t, map[string]string{
		"some.json": `{"version": 1, "records": [
			{"tenant": "acme", "limit": "minute", "capacity": 5, "expires": "2020-01-01T00:00:00Z", "reason": "old"},
			{"tenant": "acme", "limit": "minute", "capacity": 5000, "expires": "2096-01-01T00:00:00Z", "reason": "new"}]}`,
		"all.json":     `{"version": 1, "records": [{"tenant": "acme", "mode": "shadow", "expires": "2020-01-01T00:00:00Z"}]}`,
		"endless.json": `{"version": 1, "records": [{"tenant": "acme", "mode": "shadow", "expires": "2096-01-01T00:00:00Z"}, {"tenant": "acme", "limit": "minute", "capacity": 7}]}`,
	})
	some, all, endless := filepath.Join(dir, "some.json"), filepath.Join(dir, "all.json"), filepath.Join(dir, "endless.json")
	code, stdout, stderr := o.run("override set -reason r -timeout 1m -file", some)
	require.Equal(t, exitFound, code, stderr)
	require.Equal(t, "1 override record is set, of which 0 replaced another, and 1 has expired and is not.\n", stdout)
	require.Contains(t, stderr, "record 1, of acme, is not set: it has expired at 2020-01-01T00:00:00Z")
	_, listed, _ := o.run("override list -tenant acme -timeout 1m")
	require.Contains(t, listed, "capacity 5000")
	require.Contains(t, listed, "2096-01-01T00:00:00Z", "the end of the file")
	require.NotContains(t, listed, "old")

	_, stdout, _ = o.run("override set -reason r -timeout 1m -file", some)
	require.Contains(t, stdout, "of which 1 replaced another")
	code, stdout, _ = o.run("override set -reason r -timeout 1m -file", all)
	require.Equal(t, exitFound, code)
	require.Contains(t, stdout, "0 override records are set")

	code, _, stderr = o.run("override set -reason r -timeout 1m -file", endless)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "record 2, of acme, has no end: say for those without one -for DURATION")
	code, stdout, stderr = o.run("override set -for 2h -reason r -timeout 1m -file", endless)
	require.Equal(t, exitOK, code, stderr)
	require.Contains(t, stdout, "2 override records are set, of which 1 replaced another.")
	require.Contains(t, stderr, "note: 1 record keeps the end of the file")
	_, listed, _ = o.run("override list -tenant acme -timeout 1m")
	require.Contains(t, listed, "capacity 7")
}
