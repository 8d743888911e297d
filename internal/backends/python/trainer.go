package python

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/rankops"
	"github.com/primus-fl/primus/internal/rundir"
	"github.com/primus-fl/primus/internal/rundir/tensorboard"
	"github.com/primus-fl/primus/runtime/backend"
)

// trainer is a run of a Python framework.
type trainer struct {
	tc   *backend.TrainContext
	f    Framework
	name string

	plan    *launch.Plan
	dir     *rundir.Dir // nil on a node that does not see the steps
	logTo   *os.File
	metrics *rundir.Metrics // nil before the first step
	events  *tensorboard.Writer
	run     backend.Run
	started time.Time
	last    time.Time // when the line of the last step was read
	step    backend.Step
	losses  backend.RunLosses // the first one is that of the first step of this run
	fault   error             // the first of writing what a step leaves
	unread  map[string]bool   // values of lines that were warned of

	opLog     opLog
	ranks     backend.RankDispatch
	opMu      sync.Mutex      // guards fallbacks
	fallbacks map[string]bool // those that were warned of
	outcome   outcome
}

func newTrainer(tc *backend.TrainContext, f Framework, name string) *trainer {
	return &trainer{tc: tc, f: f, name: name, unread: map[string]bool{}}
}

// LaunchPlan returns the plan that Train carries out.
func (t *trainer) LaunchPlan() (*launch.Plan, error) { return plan(t.tc, t.f) }

// Setup makes the plan and, on the node that sees the steps, acquires the run directory.
func (t *trainer) Setup(context.Context) error {
	var err error
	if t.plan, err = t.LaunchPlan(); err != nil {
		return err
	}
	if t.plan.NodeRank == 0 {
		for _, note := range t.plan.Notes {
			t.tc.Log.Warn(fmt.Sprintf("[Primus:%s] %s", t.f.Name, note))
		}
	}
	if !t.seesSteps() {
		return nil
	}
	e := t.tc.Experiment
	if t.dir, err = rundir.Open(rundir.Location{Workspace: e.Workspace, WorkGroup: e.WorkGroup, UserName: e.UserName, ExpName: e.ExpName}); err != nil {
		return err
	}
	for _, w := range t.dir.Warnings() {
		t.tc.Log.Warn(w)
	}
	if t.logTo, err = durable.OpenAppend(t.dir.Path(rundir.LogName)); err != nil {
		return fmt.Errorf("open the log: %w", durable.Explain(err))
	}
	return t.tc.LogFile.Attach(t.logTo)
}

// seesSteps reports whether the rank that writes the lines of the steps runs on this node.
func (t *trainer) seesSteps() bool {
	if t.f.FromLast {
		return t.plan.NodeRank == t.plan.Nodes-1
	}
	return t.plan.NodeRank == 0
}

// Init writes the resolved configuration.
func (t *trainer) Init(context.Context) error {
	if t.dir == nil {
		return nil
	}
	resolved, err := formats.YAML{}.Render(backend.WithoutSecrets(t.tc.Experiment.Export()), false)
	if err != nil {
		return fmt.Errorf("write the resolved configuration: %w", err)
	}
	return t.dir.WriteFile(rundir.ConfigName, resolved)
}

// Train runs the processes of the framework until they end.
func (t *trainer) Train(ctx context.Context) error {
	t.started = time.Now()
	t.last = t.started
	t.run = backend.Run{
		Name: t.tc.Experiment.ExpName, Model: t.tc.Module.Model, FirstStep: 1, Steps: t.f.Steps(t.tc), LogInterval: 1,
		TokensPerStep: t.f.TokensPerStep(t.tc, t.plan.WorldSize), Devices: t.plan.Nodes * t.plan.PerNode,
	}
	if t.dir != nil {
		t.run.Dir = t.dir.Path()
		t.tc.Observer.RunStarted(t.run)
	}
	for _, p := range t.plan.Processes {
		t.tc.Log.Debug(fmt.Sprintf("rank %d: %s", p.Rank, t.plan.Shell(p)))
	}
	t.tc.Log.Info(fmt.Sprintf("[Primus:%s] %d of %d processes start on this node: %s; their output is in %s",
		t.f.Name, t.onThisNode(), t.plan.WorldSize, Shown(t.plan.Processes[0].Argv), t.plan.LogDir))
	environ := os.Environ()
	collected := func() {}
	if on, err := asked(t.tc); err != nil {
		return err
	} else if on {
		socket, stop, err := t.followOps(ctx)
		if err != nil {
			return err
		}
		environ, collected = append(environ, rankops.Variable+"="+socket), stop
	}
	err := launch.Run(ctx, t.plan, launch.Settings{
		Environ: environ,
		Show:    func(who, line string) { t.tc.Log.Info("[" + who + "] " + line) },
		Line:    t.line,
		Log:     func(text string) { t.tc.Log.Warn(fmt.Sprintf("[Primus:%s] %s", t.f.Name, text)) },
		Stalled: t.stalled,
		Resumed: t.resumed,
	})
	collected()
	if t.plan.NodeRank == 0 || t.dir != nil {
		t.keep(t.readReport())
	}
	if t.plan.NodeRank == 0 {
		t.tell()
	}
	err = t.withInterpreter(err)
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return fmt.Errorf("%w at step %d of %d; framework %s has saved what its own settings say", backend.ErrInterrupted, t.step.Step, t.run.Steps, t.f.Name)
	}
	return errors.Join(err, t.fault)
}

func (t *trainer) onThisNode() int { return t.plan.WorldSize / t.plan.Nodes }

// line takes a line of a rank that is the line of a step, the first of each step. Lines about
// dispatch are passed on to the observers.
func (t *trainer) line(rank int, line string) bool {
	for _, e := range t.opLog.events(rank, line) {
		t.opEvent(rank, e)
	}
	s, ok := t.f.Step(line)
	for _, u := range s.Unread {
		if !t.unread[u.Name] {
			t.unread[u.Name] = true
			t.tc.Log.Warn(fmt.Sprintf("[Primus:%s] %s in a line of rank %d: given %q, want a number; it counts as unknown", t.f.Name, u.Name, rank, u.Text))
		}
	}
	if !ok {
		return false
	}
	if t.dir != nil && s.Step > t.step.Step {
		t.note(s)
	}
	return true
}

// note writes a step to the files of the run and passes it to the observers.
func (t *trainer) note(s Step) {
	now := time.Now()
	between := s.Step - t.step.Step
	if t.metrics == nil {
		between = 1
		t.run.FirstStep, t.losses.FirstLoss = s.Step, s.Loss
		t.keep(t.open(s.Step))
	}
	if s.Steps > 0 {
		t.run.Steps = s.Steps
	}
	tokens := t.tokens(s)
	step := backend.Step{
		Step: s.Step, Steps: s.Steps, Loss: s.Loss, LR: s.LR, GradNorm: s.GradNorm, Duration: perStep(s, now.Sub(t.last), between), Tokens: tokens * between,
		TFLOPSPerDevice: s.TFLOPSPerDevice, MemoryBytes: s.MemoryBytes,
	}
	switch {
	case s.TokensPerDevice > 0 && (tokens == 0 || s.Seconds == 0):
		step.TokensPerSecond = s.TokensPerDevice * float64(t.run.Devices)
	case step.Duration > 0:
		step.TokensPerSecond = float64(tokens) / step.Duration.Seconds()
	}
	t.step, t.last = step, now
	t.losses.Update(step)
	record := rundir.RecordOf(step)
	if t.metrics != nil && finite(step.Loss) && finite(step.GradNorm) {
		t.keep(t.metrics.Append(record))
	}
	if t.events != nil {
		t.keep(t.events.Scalars(record.Step, record.Scalars()...))
	}
	t.tc.Observer.StepDone(step)
}

// tokens is how many tokens a step trains on.
func (t *trainer) tokens(s Step) int {
	switch {
	case s.Tokens > 0:
		return s.Tokens
	case s.GlobalBatch > 0:
		length, _ := t.tc.Args.Lookup("seq_length")
		n, _ := length.Int64()
		return s.GlobalBatch * int(n)
	}
	return t.run.TokensPerStep
}

// open opens the files of steps for a run that begins with a step.
func (t *trainer) open(step int) (err error) {
	if t.metrics, err = t.dir.OpenMetrics(int64(step - 1)); err != nil {
		return err
	}
	for _, w := range t.metrics.Warnings() {
		t.tc.Log.Warn(w)
	}
	t.events, err = tensorboard.Create(filepath.Join(t.dir.Path(), "tensorboard-primus"), int64(step))
	return err
}

// keep records the first error of writing the files of steps; training continues.
func (t *trainer) keep(err error) {
	if err != nil && t.fault == nil {
		t.fault = err
		t.tc.Log.Warn(err.Error())
	}
}

// Cleanup writes the plot, reports the end and closes the files.
func (t *trainer) Cleanup(cause error) error {
	if t.dir == nil {
		return nil
	}
	var faults []error
	if t.metrics != nil {
		records, err := t.metrics.Records()
		faults = append(faults, err)
		if len(records) > 0 {
			faults = append(faults, t.dir.PlotLoss(rundir.Losses{Name: t.run.Name, Unit: t.run.LossIn(), Records: records}))
		}
		faults = append(faults, t.metrics.Close())
	}
	if t.events != nil {
		faults = append(faults, t.events.Close())
	}
	if !t.started.IsZero() {
		faults = append(faults, t.writeDispatch())
		t.tc.Observer.RunEnded(backend.Result{
			Run: t.run, RunLosses: t.losses, LastStep: t.step.Step, Duration: time.Since(t.started), Err: cause,
			Ranks: t.ranks.Uses(), Patches: t.patches(), Versions: t.versions(),
		})
	}
	t.tc.LogFile.Detach()
	if t.logTo != nil {
		faults = append(faults, t.logTo.Close())
	}
	return errors.Join(append(faults, t.dir.Close())...)
}

// finite reports whether metrics.jsonl can hold a number.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

var _ backend.Trainer = (*trainer)(nil)

// stalled reports that no process makes progress that can be seen.
func (t *trainer) stalled(text string, silent time.Duration) {
	if w, ok := t.tc.Observer.(backend.StallObserver); ok {
		w.Stalled(backend.Stall{Phase: backend.PhaseStart, Step: t.run.FirstStep - 1, For: silent, Text: text})
	}
}

// resumed reports that a process makes progress again.
func (t *trainer) resumed() {
	if w, ok := t.tc.Observer.(backend.StallObserver); ok {
		w.Resumed()
	}
}
