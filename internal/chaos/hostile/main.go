//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"text/tabwriter"

	"github.com/primus-fl/primus/cmd/primus/command"
	"github.com/primus-fl/primus/internal/program"
)

// roleVariable makes this program primus.
const roleVariable = "CHAOS_HOSTILE_ROLE"

func main() {
	if os.Getenv(roleVariable) != "" {
		os.Exit(command.Main(os.Args[1:], command.StandardStreams()))
	}
	program.Main("hostile", run)
}

// run attacks runs as the arguments say and prints a table.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("hostile", flag.ContinueOnError)
	flags.SetOutput(progress)
	every := flags.Int("every", 1, "make every N-th attack only")
	output := flags.String("o", "text", "text, or md for a table of Markdown")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case *output != "text" && *output != "md":
		return fmt.Errorf("-o: got %q, want text or md", *output)
	case *every < 1:
		return fmt.Errorf("-every: got %d, want a number from 1", *every)
	}
	dir, err := os.MkdirTemp("", "hostile-")
	if err != nil {
		return err
	}
	l, err := newLab(ctx, dir)
	if err != nil {
		return err
	}
	var chosen []attack
	for i, a := range attacks() {
		if i%*every == 0 {
			chosen = append(chosen, a)
		}
	}
	faults := l.tryAll(ctx, chosen, progress)
	table(out, *output, chosen, faults)
	for _, fault := range faults {
		if fault != nil {
			return fmt.Errorf("an attack did not end as it should; the directories of such are kept in %s", dir)
		}
	}
	return os.RemoveAll(dir)
}

// tryAll makes the attacks, twice as many at a time as there are processors, because most attacks
// wait.
func (l *lab) tryAll(ctx context.Context, chosen []attack, progress io.Writer) []error {
	faults := make([]error, len(chosen))
	next := make(chan int)
	var all sync.WaitGroup
	var mu sync.Mutex
	for range 2 * runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := range next {
				faults[i] = l.try(ctx, i, chosen[i])
				if faults[i] != nil {
					mu.Lock()
					fmt.Fprintln(progress, faults[i])
					mu.Unlock()
				}
			}
		})
	}
	for i := range chosen {
		next <- i
	}
	close(next)
	all.Wait()
	return faults
}

// table prints how many attacks ended as expected, a row for each phase and outcome.
func table(out io.Writer, output string, chosen []attack, faults []error) {
	type key struct {
		phase    string
		expected outcome
	}
	tried, kept := map[key]int{}, map[key]int{}
	for i, a := range chosen {
		k := key{a.phase, a.expected()}
		tried[k]++
		if faults[i] == nil {
			kept[k]++
		}
	}
	separator, w := "\t", io.Writer(out)
	aligned := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if output == "md" {
		separator = " | "
		fmt.Fprintln(out, "| phase | outcome | attacks | kept |\n|---|---|---:|---:|")
	} else {
		w = aligned
		fmt.Fprintln(w, "phase\toutcome\tattacks\tkept")
	}
	for _, phase := range phases {
		for _, expected := range []outcome{rejected, contained, ended, restored, accused, used} {
			k := key{phase, expected}
			if tried[k] == 0 {
				continue
			}
			line := fmt.Sprint(phase, separator, expected, separator, tried[k], separator, kept[k])
			if output == "md" {
				line = "| " + line + " |"
			}
			fmt.Fprintln(w, line)
		}
	}
	aligned.Flush()
}
