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
	"time"

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
	{"crowd", crowds},
	{"memory", memoryStores},
	{"redis", redisStores},
	{"counting", counting},
	{"pipelining", pipelining},
	{"events", events},
	{"policy", largePolicy},
	{"pricing", pricing},
	{"growth", growth},
	{"door", frontDoor},
}

// everything is the default of -match.
const everything = "."

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
	match, commit, keep, into     string
	rounds, starved, worst, flood int
}

func parseFlags(args []string) (asked, error) {
	var a asked
	flags := flag.NewFlagSet("benchmarks", flag.ContinueOnError)
	flags.StringVar(&a.match, "match", everything, "regular `expression` that the names of sections have to match")
	flags.StringVar(&a.into, "into", "", "the `file` between whose marks the report is written as well")
	flags.IntVar(&a.rounds, "rounds", usual.rounds, "how many rounds each table takes")
	flags.StringVar(&a.commit, "against", "", "compare the benchmarks of the checkout with those of a `commit`, and nothing else; "+
		"-match then names benchmarks")
	flags.IntVar(&a.starved, "starved", 0, "for so many `seconds` each, starve the server of the example in several ways and count how it decides, "+
		"and nothing else; with -against also that of the commit")
	flags.IntVar(&a.flood, "flood", 0, "for so many `seconds` each, flood the server of the example in several ways beside honest clients, "+
		"and nothing else; with -against also that of the commit")
	flags.IntVar(&a.worst, "worst", 0, "for so many `seconds` altogether, search for the documents that take a server longest, and nothing else")
	flags.StringVar(&a.keep, "keep", "", "with -worst, the `folder` that the documents found are written to")
	err := flags.Parse(args)
	if a.commit != "" && a.match == everything {
		a.match = ownBenchmarks
	}
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
	var text string
	switch {
	case a.starved > 0:
		text, err = starved(ctx, a.commit, a.starved)
	case a.flood > 0:
		text, err = floods(ctx, a.commit, a.flood)
	case a.worst > 0:
		text, err = searchWorst(ctx, time.Duration(a.worst)*time.Second, a.keep)
	case a.commit != "":
		text, err = against(ctx, e, a.commit, wanted)
	default:
		return report(ctx, out, e, wanted, a.into)
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, machine(ctx)+"\n"+text)
	return err
}
