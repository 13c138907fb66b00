package statement_test

import (
	"fmt"
	"time"

	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/audit"
	"github.com/gqlgen-ratelimit/ratelimit/gqlratelimitd/statement"
)

// Who is billed reads a statement with nothing but its bytes and the public key.
func Example() {
	private, public, err := audit.NewKey("log.example.org")
	if err != nil {
		panic(err)
	}
	key, err := audit.ParseKey(private)
	if err != nil {
		panic(err)
	}
	november := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	signed, err := (&statement.Statement{
		Number: 1, Tenant: "acme", From: november.AddDate(0, -1, 0), To: november, Frozen: november.AddDate(0, 0, 3), Collected: november.AddDate(0, 0, 3),
		Lines: []statement.Line{{Unit: "points", Grade: "exact", Charged: 48_210, GivenBack: 1_204}},
	}).Sign(key)
	if err != nil {
		panic(err)
	}

	s, _, err := statement.Open(signed, public)
	if err != nil {
		panic(err)
	}
	for _, line := range s.Lines {
		fmt.Println(s.Tenant, s.From.Format("2006-01"), line.Unit, line.Grade, line.Net())
	}
	// Output: acme 2026-10 points exact 47006
}
