// Package seed makes the property tests that import it draw the same cases in every run, so that
// `make test` says the same twice about the same code. `make test-long`, and every run with TEST_SEED=random,
// draws new ones, and twice as many; TEST_SEED=N or -rapid.seed=N draws those of a failure again.
package seed

import (
	"flag"
	"os"

	_ "pgregory.net/rapid" // defines the flag
)

// known is how many cases of each property are drawn where they are the same in every run. -rapid.checks says otherwise.
const known = "50"

func init() {
	value := os.Getenv("TEST_SEED")
	switch value {
	case "random":
		return
	case "":
		value = "1"
		if err := flag.Set("rapid.checks", known); err != nil {
			panic("rapid has no checks: " + err.Error())
		}
	}
	if err := flag.Set("rapid.seed", value); err != nil {
		panic("TEST_SEED is neither random nor a number: " + err.Error())
	}
}
