package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
)

// urlPlace stands in a command for the URL of the API.
const urlPlace = "{url}"

// command is a line to paste into a shell.
type command struct {
	// title says what the command shows.
	title string
	// expect says what it prints under the policy that is built in, and elsewhere the title under another one.
	expect, elsewhere string
	// cost is the price in points of the operation that it sends.
	cost int64
	// line is the command itself, with urlPlace where the URL of the API belongs.
	line string
}

// commands are printed when the server starts. A test runs them as they are printed.
var commands = []command{
	{
		title:  "A cheap query",
		expect: "demo-free has 1000 a minute",
		cost:   3,
		line: `curl -s -w '\n' '{url}' -H 'X-API-Key: demo-free' -H 'Content-Type: application/json' ` +
			`-d '{"query":"{ viewer { login name } }"}'`,
	},
	{
		title:  "An expensive one",
		expect: "three levels of lists, priced by what was asked for and not by what there is",
		cost:   318,
		line: `curl -s -w '\n' '{url}' -H 'X-API-Key: demo-free' -H 'Content-Type: application/json' ` +
			`-d '{"query":"{ repositories(first: 5) { nodes { name issues(first: 5) { nodes { title ` +
			`comments(first: 3) { nodes { author { login } } } } } } } }"}'`,
	},
	{
		title:     "A refusal",
		elsewhere: "One query three times",
		expect:    "the same query three times; the last answer is 429 RATE_LIMITED and says when to retry",
		cost:      611,
		line: `curl -s -i -w '\n' '{url}?try=[1-3]' -H 'X-API-Key: demo-free' -H 'Content-Type: application/json' ` +
			`-d '{"query":"{ search(query: \"nothing like it\", first: 100) { ... on Issue { comments(first: 3) { nodes { id } } } } }"}'`,
	},
	{
		title:     "A replay",
		elsewhere: "One mutation twice under one Idempotency-Key",
		expect:    "the same mutation twice under one Idempotency-Key; one issue, charged once, the second answer is a replay",
		cost:      20,
		line: `curl -s -w '\n' '{url}?try=[1-2]' -H 'X-API-Key: demo-pro' -H "Idempotency-Key: demo-$(date +%s)" ` +
			`-H 'Content-Type: application/json' ` +
			`-d '{"query":"mutation { createIssue(input: {repositoryId: \"R_1\", title: \"Pasted\"}) { issue { id number } } }"}'`,
	},
}

// printWelcome says where the server is and what to try. What is admitted under a policy from a file, nobody knows here.
func printWelcome(w io.Writer, baseURL, policy string) {
	fmt.Fprintf(w, "GraphiQL: %s/\nAPI:      %s/query\n", baseURL, baseURL)
	if policy != "" {
		fmt.Fprintf(w, "\n# What of this is admitted, the policy %q decides.\n", policy)
	}
	for _, c := range commands {
		title, expect := c.title, ": "+c.expect
		if policy != "" {
			title, expect = cmp.Or(c.elsewhere, c.title), ""
		}
		fmt.Fprintf(w, "\n# %s, %d points%s.\n", title, c.cost, expect)
		fmt.Fprintln(w, strings.ReplaceAll(c.line, urlPlace, baseURL+"/query"))
	}
}
