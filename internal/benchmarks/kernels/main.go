package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/benchmarks/peer"
)

func main() { os.Exit(doMain(os.Args[1:], os.Stdout, os.Stderr)) }

// doMain returns the exit code: 0, 1 after a failure, or 2 for wrong usage.
func doMain(args []string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	rows, err := measureAll(o, stderr)
	if err == nil {
		err = report(stdout, o.format, rows)
	}
	if err != nil {
		fmt.Fprintln(stderr, "kernels:", err)
		return 1
	}
	return 0
}

type options struct {
	threads []int
	only    *regexp.Regexp
	format  string
	cpu     bool
	limits  limits
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	o := options{threads: []int{1, 2}, only: regexp.MustCompile("")}
	flags := flag.NewFlagSet("kernels", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Func("threads", "numbers of threads, such as 1,2 (the default)", func(s string) (err error) {
		o.threads, err = parseThreads(s)
		return err
	})
	flags.Func("only", "regular expression of the cases to measure, such as 'gemm|rmsnorm'", func(s string) (err error) {
		o.only, err = regexp.Compile(s)
		return err
	})
	flags.Func("o", "table (the default) or json", func(s string) error {
		if s != "table" && s != "json" {
			return errors.New("want table or json")
		}
		o.format = s
		return nil
	})
	flags.BoolVar(&o.cpu, "cpu", false, "count CPU time, for a machine that others use; with -threads 1, without attention, whose peer is another process")
	flags.DurationVar(&o.limits.time, "time", time.Second, "time for each case")
	flags.IntVar(&o.limits.rounds, "rounds", 10, "rounds for each case at least")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(stderr, "unexpected argument %q\n", flags.Arg(0))
		return o, errors.New("usage")
	}
	if o.cpu && (len(o.threads) != 1 || o.threads[0] != 1 || o.only.MatchString("attention/")) {
		err := fmt.Errorf("-cpu: got -threads %v and -only %q, want one thread and cases other than attention, such as -threads 1 -only '^options'", o.threads, o.only)
		fmt.Fprintln(stderr, err)
		return o, err
	}
	return o, nil
}

func parseThreads(s string) ([]int, error) {
	var threads []int
	for field := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not a number of threads", field)
		}
		threads = append(threads, n)
	}
	return threads, nil
}

// measureAll measures in this process for one number of threads, and otherwise in one process for
// each number.
func measureAll(o options, stderr io.Writer) ([]row, error) {
	if len(o.threads) == 1 {
		return measure(o.threads[0], o, stderr)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	all := []row{}
	for _, n := range o.threads {
		var out bytes.Buffer
		cmd := exec.Command(self, "-threads", strconv.Itoa(n), "-only", o.only.String(), "-o", "json",
			"-time", o.limits.time.String(), "-rounds", strconv.Itoa(o.limits.rounds))
		cmd.Stdout, cmd.Stderr = &out, stderr
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("measure with %d threads: %w", n, err)
		}
		var rows []row
		if err := json.Unmarshal(out.Bytes(), &rows); err != nil {
			return nil, fmt.Errorf("read what was measured with %d threads: %w", n, err)
		}
		all = append(all, rows...)
	}
	return all, nil
}

// measure runs the chosen cases of all groups.
func measure(threads int, o options, stderr io.Writer) ([]row, error) {
	now := elapsed()
	if o.cpu {
		cpu, err := peer.CPUTime()
		if err != nil {
			return nil, fmt.Errorf("-cpu: %w", err)
		}
		now = cpu
	}
	b := newBench(threads, now)
	defer b.close()
	rows := []row{}
	for _, g := range []func() []contest{b.gemms, b.memoryOps, b.geluOps, b.quantOps, b.routerOps, b.stateOps, b.attentions, b.attentionOptions} {
		for _, c := range g() {
			if !o.only.MatchString(c.group + "/" + c.name) {
				continue
			}
			r, err := c.run(o.limits)
			if err != nil {
				return nil, fmt.Errorf("%s/%s: %w", c.group, c.name, err)
			}
			r.Threads = threads
			fmt.Fprintf(stderr, "%-10s %-32s %d threads  %s\n", r.Group, r.Case, r.Threads, r.ratio())
			rows = append(rows, r)
		}
	}
	return rows, nil
}
