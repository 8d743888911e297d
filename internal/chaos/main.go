//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/program"
)

// options are the flags of the command.
type options struct {
	seed   uint64
	short  bool
	only   string
	output string
	dir    string
}

func main() {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(play(role, os.Args[1:]))
	}
	program.Main("chaos", run)
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o := options{seed: rand.Uint64() % 1e6}
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.Uint64Var(&o.seed, "seed", o.seed, "what moments and faults are drawn from; another one each time without it")
	flags.BoolVar(&o.short, "short", false, "a few tries of each drill")
	flags.StringVar(&o.only, "only", "", "the drills to run, with commas: "+strings.Join(names(drills), ", "))
	flags.StringVar(&o.output, "o", "text", "text, or md for the table of docs/reliability.md")
	flags.StringVar(&o.dir, "dir", "", "where to work; a temporary directory without it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	selected, err := choose(o.only)
	switch {
	case err != nil:
		return err
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.output != "text" && o.output != "md":
		return fmt.Errorf("-o: got %q, want text or md", o.output)
	}
	yard, err := newYard(o.dir, progress)
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "seed %d, in %s\n", o.seed, yard.dir)
	var results []result
	for _, d := range selected {
		r, err := d.run(ctx, yard, o)
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		results = append(results, r)
	}
	table(out, o.output, results)
	broken := 0
	for _, r := range results {
		broken += r.broken
	}
	if broken > 0 {
		return fmt.Errorf("%d tries broke a promise; their directories are kept in %s", broken, yard.dir)
	}
	return yard.remove()
}

// choose returns the drills with these names, or all drills when none is given.
func choose(only string) ([]drill, error) {
	if only == "" {
		return drills, nil
	}
	var selected []drill
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(drills, func(d drill) bool { return d.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only: no drill %q, want some of %s", name, strings.Join(names(drills), ", "))
		}
		selected = append(selected, drills[i])
	}
	return selected, nil
}
