// Command fuzz runs the fuzz tests of the module one after another and prints a table of them.
//
//	go run ./internal/fuzz [-time 10s] [-only REGEXP] [-o text|json|md]
//
// Bytes and time are those of the input that cost most, for each of its bytes; inputs of less than
// 1 KiB count as 1 KiB.
//
// It exits with 1 if a test finds a fault, or runs fewer executions a second than its floor.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/procgroup"
)

// result is what the run of a target showed.
type result struct {
	Target string  `json:"target"`
	Execs  int64   `json:"execs"`
	Rate   float64 `json:"execs_per_second"`
	Floor  float64 `json:"floor"`
	New    int64   `json:"new_inputs"` // that reached code which no earlier one had reached
	Bytes  float64 `json:"worst_bytes_per_byte"`
	Time   float64 `json:"worst_nanoseconds_per_byte"`
	Fault  string  `json:"fault,omitempty"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	flags := flag.NewFlagSet("fuzz", flag.ContinueOnError)
	flags.SetOutput(progress)
	length := flags.Duration("time", 10*time.Second, "how long each test runs")
	pattern := flags.String("only", "", "run tests whose DIR.NAME matches this regular expression")
	format := flags.String("o", "text", "print text, json or md")
	if err := flags.Parse(args); err != nil {
		return err
	}
	only, err := regexp.Compile(*pattern)
	switch {
	case err != nil:
		return fmt.Errorf("-only: %w", err)
	case flags.NArg() > 0:
		return fmt.Errorf("given argument %q, want flags only", flags.Arg(0))
	case *length < time.Second:
		return fmt.Errorf("-time: given %v, want at least 1s", *length)
	case *format != "text" && *format != "json" && *format != "md":
		return fmt.Errorf("-o: given %q, want text, json or md", *format)
	}
	all, err := targets(".", only)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("-only: given %q, want a regular expression that some DIR.NAME matches", *pattern)
	}
	results := make([]result, 0, len(all))
	for i, t := range all {
		fmt.Fprintf(progress, "%d/%d %v\n", i+1, len(all), t)
		r := fuzz(ctx, t, *length)
		if ctx.Err() != nil {
			break
		}
		results = append(results, r)
	}
	if err := write(out, *format, results); err != nil {
		return err
	}
	faults := 0
	for _, r := range results {
		if r.Fault != "" {
			faults++
		}
	}
	switch {
	case faults > 0:
		return fmt.Errorf("%d of %d tests have a fault", faults, len(results))
	case len(results) < len(all):
		return fmt.Errorf("interrupted after %d of %d tests", len(results), len(all))
	}
	return nil
}

// grace is how long a test may take to start and to end.
const grace = 2 * time.Minute

// fuzz runs a target. Few attempts to make a new input smaller are enough: they cost executions.
func fuzz(ctx context.Context, t target, length time.Duration) result {
	// The test is compiled before, which takes minutes where nothing of it is in the cache.
	if text, err := exec.CommandContext(ctx, "go", "test", "-c", "-o", os.DevNull, "-fuzz", "^"+t.name+"$", "./"+t.dir).CombinedOutput(); err != nil {
		return result{Target: t.String(), Floor: t.floor, Fault: fault(text)}
	}
	ctx, cancel := context.WithTimeout(ctx, length+grace)
	defer cancel()
	costs, err := os.MkdirTemp("", "fuzz")
	if err != nil {
		return result{Target: t.String(), Fault: err.Error()}
	}
	defer os.RemoveAll(costs)
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", length.String(), "-fuzzminimizetime", "20x", "./"+t.dir)
	cmd.Env = append(os.Environ(), primustest.CostsVariable+"="+costs)
	cmd.SysProcAttr = procgroup.Attr(0, syscall.SIGKILL)
	// A test that hangs prints its goroutines on SIGQUIT, which go ignores.
	cmd.Cancel = func() error {
		procgroup.Signal(cmd.Process.Pid, []*exec.Cmd{cmd}, syscall.SIGQUIT)
		return nil
	}
	cmd.WaitDelay = 10 * time.Second
	text, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		procgroup.Signal(cmd.Process.Pid, []*exec.Cmd{cmd}, syscall.SIGKILL)
	}
	r := read(t, text)
	r.Bytes, r.Time = worst(costs)
	switch {
	case ctx.Err() != nil:
		r.Fault = fmt.Sprintf("given %v, want an end within %v after it; the output ended with:\n%s", length, grace, tail(text))
	case err != nil && !atLimit.Match(text):
		r.Fault = fault(text)
	case r.Rate < t.floor:
		r.Fault = fmt.Sprintf("given %.0f executions a second, want %.0f", r.Rate, t.floor)
	}
	return r
}

// atLimit matches what go test prints where the time is up while it starts another call, before Go
// 1.27: it has found nothing (golang.org/issue/75804).
var atLimit = regexp.MustCompile(`(?m)^--- FAIL: \w+ \(.*\)\n\s*context deadline exceeded\nFAIL$`)

// status is what go test prints every few seconds.
var status = regexp.MustCompile(`^fuzz: elapsed: (\S+), execs: (\d+) .*?(?:new interesting: (\d+))?(?: \(total: \d+\))?$`)

// read returns the numbers of the last status of a run. The rate is that of the whole run, as that
// of its last line is of a moment.
func read(t target, text []byte) result {
	r := result{Target: t.String(), Floor: t.floor}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		m := status.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		r.Execs, _ = strconv.ParseInt(m[2], 10, 64)
		r.New, _ = strconv.ParseInt(m[3], 10, 64)
		if elapsed, err := time.ParseDuration(m[1]); err == nil && elapsed > 0 {
			r.Rate = float64(r.Execs) / elapsed.Seconds()
		}
	}
	return r
}

// worst returns the worst costs of all processes of a test.
func worst(dir string) (bytes, nanoseconds float64) {
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, file := range files {
		var b, ns float64
		if text, err := os.ReadFile(file); err == nil {
			if n, _ := fmt.Sscan(string(text), &b, &ns); n == 2 {
				bytes, nanoseconds = max(bytes, b), max(nanoseconds, ns)
			}
		}
	}
	return bytes, nanoseconds
}

// fault returns the lines of a failed run that are not its status.
func fault(text []byte) string {
	var kept []byte
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if !bytes.HasPrefix(lines.Bytes(), []byte("fuzz: ")) {
			kept = append(append(kept, bytes.TrimSpace(lines.Bytes())...), '\n')
		}
	}
	return string(bytes.TrimSpace(kept[:min(len(kept), most)]))
}

// most is how many bytes of the output of a test a report keeps.
const most = 2000

// tail returns the last lines of an output.
func tail(text []byte) string {
	text = bytes.TrimSpace(text)
	if len(text) > most {
		text = text[len(text)-most:]
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return string(text)
}

func write(out io.Writer, format string, results []result) error {
	if format == "json" {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(results)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	begin, between, end := "", "\t", "\n"
	if format == "md" {
		begin, between, end = "| ", " | ", " |\n"
	}
	row := func(cells ...string) { fmt.Fprint(w, begin, strings.Join(cells, between), end) }
	row("target", "execs", "execs/s", "floor", "new", "bytes/byte", "ns/byte", "result")
	if format == "md" {
		row(":---", "---:", "---:", "---:", "---:", "---:", "---:", ":---")
	}
	for _, r := range results {
		word := "ok"
		if r.Fault != "" {
			word = "fault"
		}
		bytes, ns := fmt.Sprintf("%.0f", r.Bytes), fmt.Sprintf("%.0f", r.Time)
		if r.Bytes == 0 { // the test does not measure
			bytes, ns = "", ""
		}
		row(r.Target, fmt.Sprint(r.Execs), fmt.Sprintf("%.0f", r.Rate), fmt.Sprintf("%.0f", r.Floor), fmt.Sprint(r.New), bytes, ns, word)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		if r.Fault != "" {
			fmt.Fprintf(out, "\n%s:\n%s\n", r.Target, r.Fault)
		}
	}
	return nil
}
