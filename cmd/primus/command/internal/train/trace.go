package train

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/timeline"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// traceFlags are the flags of the timeline of a run.
type traceFlags struct {
	file  string
	steps uint
}

func (f *traceFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.file, "trace-file", "", "write when each call of an op began and ended to `FILE`, for Perfetto and chrome://tracing")
	flags.UintVar(&f.steps, "trace-steps", 3, "trace `N` steps, after the first one of the run")
}

// check returns the first mistake in the flags.
func (f *traceFlags) check(cmd *cobra.Command) error {
	if f.file == "" && cmd.Flags().Changed("trace-steps") {
		return cli.Usagef(cmd, "--trace-steps needs --trace-file, which says where the timeline is written, such as --trace-file trace.json")
	}
	if f.file == "" {
		return nil
	}
	if f.steps == 0 {
		return cli.Usagef(cmd, "--trace-steps: given 0, want at least one step")
	}
	if err := durable.CheckFileWritable(f.file); err != nil {
		return cli.Usagef(cmd, "--trace-file: given %q: %v", f.file, durable.Explain(err))
	}
	return nil
}

// ofRank returns the file for one of several ranks, or for all of them if rank is a pattern.
func (f *traceFlags) ofRank(rank string) string {
	ext := filepath.Ext(f.file)
	return strings.TrimSuffix(f.file, ext) + ".rank-" + rank + ext
}

// parts returns the files that ranks have written.
func (f *traceFlags) parts() ([]string, error) {
	dir := filepath.Dir(f.file)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	before, after, _ := strings.Cut(filepath.Base(f.ofRank("*")), "*")
	var parts []string
	for _, e := range entries {
		rank, begins := strings.CutPrefix(e.Name(), before)
		if rank, ends := strings.CutSuffix(rank, after); begins && ends && strings.Trim(rank, "0123456789") == "" {
			parts = append(parts, filepath.Join(dir, e.Name()))
		}
	}
	return parts, nil
}

// clear removes the files of ranks of an earlier run.
func (f *traceFlags) clear() error {
	if f.file == "" {
		return nil
	}
	parts, err := f.parts()
	for _, part := range parts {
		err = errors.Join(err, os.Remove(part))
	}
	return err
}

// join makes one timeline of those of the ranks that this process has started.
func (f *traceFlags) join(out io.Writer) error {
	if f.file == "" {
		return nil
	}
	parts, err := f.parts()
	if err != nil || len(parts) == 0 {
		return err
	}
	if err := timeline.JoinFiles(f.file, parts); err != nil {
		return fmt.Errorf("--trace-file: %w", err)
	}
	fmt.Fprintf(out, "primus: %s has the timelines of %s\n", f.file, plaintext.Quantity(len(parts), "rank", "ranks"))
	return f.clear()
}

// tracer records the timeline of some steps of a run.
type tracer struct {
	flags   traceFlags
	place   ranks
	manager *opmanager.Manager
	log     *slog.Logger

	line        timeline.Timeline
	first, last int // steps
	remove      func()
	model       string
}

// runStarted chooses the steps. The first one is left out, because memory and caches are cold in
// it, unless there is no other.
func (t *tracer) runStarted(r backend.Run) {
	t.model = r.Model
	t.first = min(r.FirstStep+1, r.Steps)
	t.last = min(t.first+int(t.flags.steps)-1, r.Steps)
	t.setStep(r.FirstStep)
}

// setStep says that a step begins.
func (t *tracer) setStep(step int) {
	switch {
	case step == t.first:
		t.remove = t.manager.Tap(&t.line)
		t.line.SetStep(step)
	case t.remove != nil && step <= t.last:
		t.line.SetStep(step)
	case t.remove != nil:
		t.stop()
	}
}

func (t *tracer) stop() {
	t.remove()
	t.remove = nil
	t.line.SetStep(0)
}

// close writes the timeline.
func (t *tracer) close() error {
	if t.remove != nil {
		t.stop()
	}
	file, process := t.flags.file, "primus "+t.model
	if t.place.WorldSize > 1 {
		file = t.flags.ofRank(fmt.Sprint(t.place.Rank))
		process = fmt.Sprintf("rank %d of %d, %s", t.place.Rank, t.place.WorldSize, process)
	}
	if t.line.Calls() == 0 {
		t.log.Warn(fmt.Sprintf("--trace-file: %s is not written, because no step was traced", file))
		return nil
	}
	if err := durable.WriteFile(file, func(w io.Writer) error { return t.line.WriteJSON(w, process, t.place.Rank) }); err != nil {
		return fmt.Errorf("--trace-file: %w", err)
	}
	said := fmt.Sprintf("%s has %s; open it with https://ui.perfetto.dev or chrome://tracing", file, plaintext.Quantity(t.line.Calls(), "call", "calls"))
	if t.place.WorldSize > 1 {
		said = fmt.Sprintf("%s has %s of this rank; primus ops trace join %s joins those of all", file, plaintext.Quantity(t.line.Calls(), "call", "calls"), t.flags.ofRank("*"))
	}
	t.log.Info(said)
	return nil
}
