// Command benchmarks measures this library beside others and prints tables in Markdown:
//
//	go run . -match 'pricing|server'
//
// It is a module of its own, so that the libraries it compares with are no dependency of users. Each
// table is made by contenders that run in turns, in another order each round, and shows medians over
// the rounds. The times depend on the machine and on what else it does; the ratios, which are formed
// within a round, hardly do.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// section is one part of the report.
type section struct {
	name string
	run  func(context.Context, effort) (*findings, error)
}

// sections are the parts of the report, in their order.
var sections = []section{
	{"server", wholeServer},
	{"latency", latency},
	{"redis", redisStores},
	{"pipelining", pipelining},
	{"go", goBenchmarks},
}

func main() {
	redis.SetLogger(quiet{})
	if played, err := play(); played {
		if err != nil {
			fmt.Fprintf(os.Stderr, "benchmarks: %v\n", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		stop()
		fmt.Fprintf(os.Stderr, "benchmarks: %v\n", err)
		os.Exit(1)
	}
}

// asked is what the flags ask for.
type asked struct {
	match, into string
	rounds      int
}

func parseFlags(args []string) (asked, error) {
	var a asked
	flags := flag.NewFlagSet("benchmarks", flag.ContinueOnError)
	flags.StringVar(&a.match, "match", ".", "regular `expression` that the names of sections have to match")
	flags.StringVar(&a.into, "into", "", "the `file` between whose marks the report is written as well")
	flags.IntVar(&a.rounds, "rounds", usual.rounds, "how many rounds each table takes")
	err := flags.Parse(args)
	a.rounds = max(1, a.rounds)
	return a, err
}

func run(ctx context.Context, out io.Writer, args []string) error {
	a, err := parseFlags(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	wanted, err := regexp.Compile(a.match)
	if err != nil {
		return err
	}
	e := usual
	e.rounds = a.rounds
	return report(ctx, out, e, wanted, a.into)
}
