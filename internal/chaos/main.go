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

	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/program"
)

// options are the flags of the command.
type options struct {
	seed   uint64
	short  bool
	sweep  bool
	only   string
	output string
	dir    string

	markdown bool
}

func main() {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(play(role, os.Args[1:]))
	}
	program.Main("chaos", run)
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	if len(args) > 0 && args[0] == "plugins" {
		return attackWithPlugins(ctx, args[1:], out, progress)
	}
	o := options{seed: rand.Uint64() % 1e6}
	flags := newFlags("chaos", &o, progress)
	flags.Uint64Var(&o.seed, "seed", o.seed, "what moments and faults are drawn from; another one each time without it")
	flags.BoolVar(&o.short, "short", false, "a few tries of each drill")
	flags.BoolVar(&o.sweep, "sweep", false, "in the drills ranks, calls and power, attack in every way and at every call instead of a sample: an hour")
	flags.StringVar(&o.only, "only", "", "the drills to run, with commas: "+strings.Join(names(drills), ", "))
	if err := o.parse(flags, args); err != nil {
		return err
	}
	selected, err := choose(o.only)
	if err != nil {
		return err
	}
	yard, err := newYard(o.dir, progress)
	if err != nil {
		return err
	}
	yard.sweep = o.sweep
	fmt.Fprintf(progress, "seed %d, in %s\n", o.seed, yard.dir)
	var results []result
	broken := 0
	for _, d := range selected {
		r, err := d.run(ctx, yard, o)
		if err != nil {
			return fmt.Errorf("%s: %w", d.name, err)
		}
		results = append(results, r)
		broken += r.broken
	}
	return yard.close(out, section(o.markdown, results), o.markdown, broken)
}

// newFlags returns flags with those that drills and plugins have in common.
func newFlags(name string, o *options, progress io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.StringVar(&o.output, "o", "text", "text, or md for a table of Markdown")
	flags.StringVar(&o.dir, "dir", "", "where to work; a temporary directory without it")
	return flags
}

// parse reads the flags.
func (o *options) parse(flags *flag.FlagSet, args []string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.output != "text" && o.output != "md":
		return fmt.Errorf("-o: given %q, want text or md", o.output)
	}
	o.markdown = o.output == "md"
	return nil
}

// close prints the results and removes the directory, unless a promise was broken.
func (y *yard) close(out io.Writer, results plaintext.Section, markdown bool, broken int) error {
	if err := plaintext.WriteSections(out, markdown, []plaintext.Section{results}); err != nil {
		return err
	}
	if broken > 0 {
		return fmt.Errorf("%d tries broke a promise; their directories are kept in %s", broken, y.dir)
	}
	return os.RemoveAll(y.dir)
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
