package train

import (
	"errors"
	"fmt"
	"log/slog"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/internal/buildinfo"
	"github.com/primus-fl/primus/internal/finite"
	"github.com/primus-fl/primus/internal/plaintext"
	"github.com/primus-fl/primus/internal/recording"
	"github.com/primus-fl/primus/internal/spans"
	"github.com/primus-fl/primus/internal/suggest"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// tapFlags are the flags of what stands around the calls of ops.
type tapFlags struct {
	ops, layers []string
	dir, calls  string
	megabytes   uint
	finite      string
	trace       traceFlags
}

// finiteOps is the value of --check-finite.
const finiteOps = "ops"

func (f *tapFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.ops, "record-ops", nil, "keep calls of ops whose names match these `PATTERNS`, for primus ops replay")
	flags.StringVar(&f.dir, "record-dir", "recorded-ops", "`DIR` for the files of kept calls")
	flags.StringVar(&f.calls, "record-calls", "first:1", "which `CALLS` are kept: first:N of each op, layer and phase, every:N, step:N, faults for those that fail or yield NaN or infinity, or several separated by commas")
	flags.StringSliceVar(&f.layers, "record-layers", nil, "only calls of these `LAYERS`, counted from 0")
	flags.UintVar(&f.megabytes, "record-limit", 1024, "keep at most `N` MiB of calls; 0 sets no limit")
	flags.StringVar(&f.finite, "check-finite", "", "`ops` looks at the result of each op and ends the run at the first that is not finite")
	f.trace.addFlags(flags)
}

// settings returns what the flags say, nil if nothing is to be recorded.
func (f *tapFlags) settings(cmd *cobra.Command) (*recording.Settings, error) {
	if f.finite != "" && f.finite != finiteOps {
		return nil, cli.Usagef(cmd, "--check-finite: given %q, want %s", f.finite, finiteOps)
	}
	if err := f.trace.check(cmd); err != nil {
		return nil, err
	}
	if len(f.ops) == 0 {
		for _, name := range []string{"record-dir", "record-calls", "record-layers", "record-limit"} {
			if cmd.Flags().Changed(name) {
				return nil, cli.Usagef(cmd, "--%s needs --record-ops, which says which ops are recorded, such as --record-ops '*'", name)
			}
		}
		return nil, nil
	}
	choice, err := recording.ParseChoice(f.calls)
	if err != nil {
		return nil, cli.Usagef(cmd, "--record-calls: %v", err)
	}
	const mib = 1 << 20
	set := &recording.Settings{Dir: f.dir, Ops: f.ops, Choice: choice, MaxBytes: int64(f.megabytes) * mib}
	for _, text := range f.layers {
		n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 31)
		if err != nil {
			return nil, cli.Usagef(cmd, "--record-layers: given %q, want numbers of layers, counted from 0, separated by commas", text)
		}
		set.Layers = append(set.Layers, int(n))
	}
	return set, nil
}

// checkOps returns an error for a pattern of --record-ops that fits no op of a manager.
func checkOps(patterns []string, m *opmanager.Manager) error {
	var names []string
	for _, e := range m.ExplainAll() {
		names = append(names, e.Op)
	}
	for _, pattern := range patterns {
		fits := func(name string) bool { ok, _ := path.Match(pattern, name); return ok }
		if !slices.ContainsFunc(names, fits) {
			return cli.UsageError{Err: fmt.Errorf("--record-ops: given %q, which fits no op, so nothing was trained; primus ops list shows all%s", pattern, suggest.Hint(pattern, names))}
		}
	}
	return nil
}

// tapped reports whether the flags ask for a tap.
func (o *Options) tapped() bool {
	return o.recording != nil || o.taps.finite != "" || o.taps.trace.file != ""
}

// taps stand around the calls of a run. They see the steps as an observer.
type taps struct {
	recorder *recording.Recorder // nil without
	wrong    *recording.WrongCalls
	rank     int
	finite   finite.Check // a tap with --check-finite
	dir      string
	spans    *spans.Exporter // nil without
	tracer   *tracer         // nil without
	log      *slog.Logger
	remove   []func()
	faults   bool // calls at fault are recorded
	started  bool // the run has reached its first step
}

// newTaps adds the taps that the options and the environment ask for to a manager. Close removes
// them.
func newTaps(o *Options, m *opmanager.Manager, run string, place ranks, log *slog.Logger) (*taps, error) {
	t := &taps{log: log, wrong: recording.NewWrongCalls(log), rank: place.Rank}
	m.KeepWrong(t.wrong.Keep)
	t.remove = append(t.remove, func() { m.KeepWrong(nil) })
	if o.recording != nil {
		if err := checkOps(o.recording.Ops, m); err != nil {
			return nil, err
		}
		set := *o.recording
		set.Log = log
		if place.Rank > 0 {
			set.Dir = filepath.Join(set.Dir, rankDir(place.Rank))
		}
		var err error
		if t.recorder, err = recording.NewRecorder(set); err != nil {
			return nil, fmt.Errorf("--record-dir: %w", err)
		}
		t.dir, t.faults = set.Dir, set.Choice.Faults
		t.remove = append(t.remove, m.Tap(t.recorder))
	}
	if o.taps.finite != "" {
		t.remove = append(t.remove, m.Tap(&t.finite))
	}
	var err error
	if t.spans, err = spans.FromEnvironment(spans.Settings{Run: run, Rank: place.Rank, Version: buildinfo.Read().Version, Log: log}); err != nil {
		log.Warn(fmt.Sprintf("no spans are exported: %v", err))
	}
	if t.spans != nil {
		t.remove = append(t.remove, m.Tap(t.spans))
	}
	if o.taps.trace.file != "" {
		t.tracer = &tracer{flags: o.taps.trace, place: place, manager: m, log: log}
	}
	return t, nil
}

// rankDir returns the directory of the calls of a rank.
func rankDir(rank int) string { return fmt.Sprintf("rank-%d", rank) }

// wrongDir is the directory of wrong calls in the directory of a run.
const wrongDir = "wrong-calls"

// RunStarted tells the taps the first step.
func (t *taps) RunStarted(r backend.Run) {
	t.started = true
	if dir := filepath.Join(r.Dir, wrongDir); r.Dir != "" && t.rank > 0 {
		t.wrong.SetDir(filepath.Join(dir, rankDir(t.rank)))
	} else if r.Dir != "" {
		t.wrong.SetDir(dir)
	}
	t.setStep(r.FirstStep)
	if t.spans != nil {
		t.spans.RunStarted(r)
	}
	if t.tracer != nil {
		t.tracer.runStarted(r)
	}
}

// StepDone tells the taps of a step and the number of the next one.
func (t *taps) StepDone(s backend.Step) {
	t.setStep(s.Step + 1)
	if t.spans != nil {
		t.spans.StepDone(s)
	}
	if t.tracer != nil {
		t.tracer.setStep(s.Step + 1)
	}
}

// RunEnded tells the taps the result.
func (t *taps) RunEnded(r backend.Result) {
	if t.spans != nil {
		t.spans.RunEnded(r)
	}
}

func (t *taps) setStep(step int) {
	t.wrong.SetStep(step)
	if t.recorder != nil {
		t.recorder.SetStep(step)
	}
}

// close removes the taps, sends the last spans, writes the timeline and says what was recorded.
func (t *taps) close() (err error) {
	for _, remove := range t.remove {
		remove()
	}
	t.spans.Close()
	if t.tracer != nil {
		err = t.tracer.close()
	}
	if t.recorder == nil {
		return err
	}
	kept, recordErr := t.recorder.Close()
	switch {
	case kept == 0 && t.started && t.faults && recordErr == nil:
		t.log.Info("recorded no call: none was at fault")
	case kept == 0 && t.started && recordErr == nil:
		t.log.Warn("recorded no call: the run made none that --record-ops, --record-calls and --record-layers choose")
	case kept > 0:
		t.log.Info(fmt.Sprintf("recorded %s in %s; primus ops replay %s runs them again", plaintext.Quantity(kept, "call", "calls"), t.dir, t.dir))
	}
	return errors.Join(err, recordErr)
}

var _ backend.Observer = (*taps)(nil)
