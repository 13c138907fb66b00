package main

import (
	"fmt"
	"io"
)

// command is a line to paste into a shell.
type command struct {
	// title says what the command shows.
	title string
	// expect says what it prints.
	expect string
	// cost is the price in points of the operation that it sends.
	cost int64
	// line is the command itself, with %s where the URL of the API belongs.
	line string
}

// commands are printed when the server starts. A test runs them as they are printed.
var commands = []command{
	{
		title:  "A cheap query",
		expect: "costs 3 of the 1000 points that demo-free has a minute",
		cost:   3,
		line: `curl -s '%s' -H 'X-API-Key: demo-free' -H 'Content-Type: application/json' ` +
			`-d '{"query":"{ viewer { login name } }"}'`,
	},
	{
		title:  "An expensive one",
		expect: "three levels of lists, 323 points, whatever the lists hold in the end",
		cost:   323,
		line: `curl -s '%s' -H 'X-API-Key: demo-free' -H 'Content-Type: application/json' ` +
			`-d '{"query":"{ repositories(first: 5) { nodes { name issues(first: 5) { nodes { title ` +
			`comments(first: 3) { nodes { author { login } } } } } } } }"}'`,
	},
	{
		title:  "A refusal",
		expect: "the same query three times for 611 points each; the last answer is 429 RATE_LIMITED with a Retry-After",
		cost:   611,
		line: `curl -s -i '%s?try=[1-3]' -H 'X-API-Key: demo-free' -H 'Content-Type: application/json' ` +
			`-d '{"query":"{ search(query: \"nothing like it\", first: 100) { ... on Issue { comments(first: 3) { nodes { id } } } } }"}'`,
	},
	{
		title:  "A replay",
		expect: "the same mutation twice under one Idempotency-Key; one issue, charged 20 points once, the second answer is a replay",
		cost:   20,
		line: `curl -s '%s?try=[1-2]' -H 'X-API-Key: demo-pro' -H "Idempotency-Key: demo-$(date +%%s)" ` +
			`-H 'Content-Type: application/json' ` +
			`-d '{"query":"mutation { createIssue(input: {repositoryId: \"R_1\", title: \"Pasted\"}) { issue { id number } } }"}'`,
	},
}

// printWelcome says where the server is and what to try.
func printWelcome(w io.Writer, baseURL string) {
	fmt.Fprintf(w, "GraphiQL: %s/\nAPI:      %s/query\n", baseURL, baseURL)
	for _, c := range commands {
		fmt.Fprintf(w, "\n# %s: %s.\n", c.title, c.expect)
		fmt.Fprintf(w, c.line+"\n", baseURL+"/query")
	}
}
