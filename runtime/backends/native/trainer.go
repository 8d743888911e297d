package native

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/internal/native/data"
	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/posttrain"
	"github.com/primus-fl/primus/internal/native/shards"
	"github.com/primus-fl/primus/internal/rundir"
	"github.com/primus-fl/primus/internal/rundir/tensorboard"
	"github.com/primus-fl/primus/internal/rundir/tracking"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/opmanager/oppolicy"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/patch"
)

// trainer is a run of the native backend.
type trainer struct {
	engine
	tc *backend.TrainContext

	dir       *rundir.Dir
	logTo     *os.File
	metrics   *rundir.Metrics
	events    *tensorboard.Writer // nil without TensorBoard
	track     *tracking.Set       // on the first rank
	store     *checkpoint.Store
	data      corpus     // nil before it is loaded
	record    dataRecord // of the files that hold the data, on the first rank
	sampler   feed
	reference *model.Model   // the weights to compare with, in stage dpo
	examples  *posttrain.Set // nil for a run that learns from text
	valid     *evaluation    // nil without evaluation
	final     *evaluation    // after the last step; nil without evaluation
	test      *evaluation    // after the last step; nil without a test
	state     state
	started   time.Time
	result    backend.Result // as far as it is known before the end
	clock     *stepClock     // of the device; nil for a run in host memory
	watch     *opmanager.ReferenceWatch

	from     *checkpoint.Checkpoint // which the run goes on from; nil for a new run, and on other ranks
	together bool                   // all ranks write checkpoints

	validStep  int           // of the last validation of this process
	savedStep  int           // of the last checkpoint, 0 for none
	saveFailed bool          // the last save has failed
	saving     *ongoing      // the checkpoint that is being written; nil for none
	copies     shards.Copies // of what this rank writes
}

func newTrainer(tc *backend.TrainContext) (backend.Trainer, error) {
	args, err := newArgs(tc)
	if err != nil {
		return nil, err
	}
	job, err := newWorld(tc, args)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	t := &trainer{engine: engine{args: args, manager: tc.Manager, log: tc.Log, world: job, takeSave: tc.Requests.TakeSave, progress: tc.Progress}, tc: tc}
	t.monitor, t.judged = args.newMonitor(), func(j backend.Judgement) {
		if o, ok := tc.Observer.(backend.HealthObserver); ok {
			o.Judged(j)
		}
	}
	if args.ExitDuration > 0 {
		t.timeIsUp = func() bool { return time.Since(begun).Minutes() >= args.ExitDuration }
	}
	t.saveReady = func() bool { return t.saving != nil && t.saving.IsReady() }
	t.declarePoints(func(b *model.Batch) error { return t.sampler.Batch(b) })
	return t, nil
}

// The files of a run directory, besides those of package rundir.
const (
	batchesFile     = "batches.safetensors"
	checkpointsName = "checkpoints"
	tensorboardName = "tensorboard"
)

// Setup creates and locks the run directory, of which only the first rank has one.
func (t *trainer) Setup(context.Context) error {
	if !t.world.Leads() {
		return nil
	}
	var err error
	if t.dir, err = rundir.Open(t.location()); err != nil {
		return err
	}
	if t.logTo, err = durable.OpenAppend(t.dir.Path(rundir.LogName)); err != nil {
		return fmt.Errorf("open the log: %w", durable.Explain(err))
	}
	if err := t.tc.LogFile.Attach(t.logTo); err != nil {
		return err
	}
	t.warn(t.dir.Warnings())
	return nil
}

// location returns the location of the run directory.
func (t *trainer) location() rundir.Location {
	e := t.tc.Experiment
	return rundir.Location{Workspace: e.Workspace, WorkGroup: e.WorkGroup, UserName: e.UserName, ExpName: e.ExpName}
}

// Init builds data, model and optimizer and loads the checkpoint to go on from.
func (t *trainer) Init(ctx context.Context) error {
	t.progress.Enter(backend.PhaseRendezvous, 0)
	if err := t.world.Compare(t.claim); err != nil { // before the text is read, which may take long
		return err
	}
	t.progress.Enter(backend.PhaseData, 0)
	if err := t.loadData(ctx); err != nil {
		return err
	}
	t.progress.Enter(backend.PhaseStart, 0)
	if _, err := t.args.checkMemory(t.tc.Manager, t.tc.Device, t.world.Ranks); err != nil {
		return err
	}
	if err := t.build(t.tc.Device); err != nil {
		return err
	}
	if err := t.refer(); err != nil {
		return err
	}
	t.progress.Enter(backend.PhaseRendezvous, 0)
	if err := t.world.Compare(t.claim); err != nil {
		return err
	}
	t.progress.Enter(backend.PhaseStart, t.state.Step)
	t.state = state{Seed: t.args.Seed, Data: t.data.Fingerprint()}
	t.record.Fingerprint = t.state.Data
	if t.world.Leads() {
		if err := t.openRun(); err != nil {
			return err
		}
	}
	if err := t.share(false); err != nil {
		return err
	}
	t.monitor.Restore(t.state.Health)
	t.manager.RestoreCanaries(t.state.Canaries)
	if t.lossScale != nil && t.state.LossScale != nil {
		t.lossScale.Restore(*t.state.LossScale)
	}
	if err := t.seeTogether(); err != nil {
		return err
	}
	if err := t.expectCalls(); err != nil {
		return err
	}
	if err := t.reserveCopies(); err != nil {
		return err
	}
	if t.state.Step > 0 {
		return nil
	}
	if t.args.DumpBatches > 0 && t.world.Leads() {
		if err := data.DumpBatches(ctx, t.dir.Path(batchesFile), t.sampler.(textFeed).Sampler, t.args.DumpBatches, t.args.GlobalBatchSize); err != nil {
			return err
		}
	}
	if t.args.SaveInitial {
		return t.save()
	}
	return nil
}

// openRun loads the checkpoint to go on from and opens the files of the run.
func (t *trainer) openRun() error {
	if err := t.openStore(); err != nil {
		return err
	}
	if err := t.restore(); err != nil {
		return err
	}
	if err := t.recordRun(); err != nil {
		return err
	}
	var err error
	if t.metrics, err = t.dir.OpenMetrics(int64(t.state.Step)); err != nil {
		return err
	}
	t.warn(t.metrics.Warnings())
	if !t.args.DisableTensorboard {
		if t.events, err = tensorboard.Create(t.dir.Path(tensorboardName), int64(t.state.Step)+1); err != nil {
			return err
		}
	}
	if t.state.Step < t.args.TrainIters {
		at := t.location()
		t.track, err = tracking.Open(t.args.Trackers, tracking.Run{
			Dir: t.dir, Name: at.ExpName, Group: at.WorkGroup + "_" + at.UserName, FirstStep: int64(t.state.Step) + 1,
			Params: t.tc.Args.Map(), Env: variables(t.tc), Warn: func(text string) { t.tc.Log.Warn(text) },
		})
	}
	return err
}

// variables returns a function that looks up variables of the environment.
func variables(tc *backend.TrainContext) func(name string) string {
	return func(name string) string {
		value, _ := tc.Environ.Lookup(name)
		return value
	}
}

// saveDir is where the first rank saves, the only one that has a Store.
func (t *trainer) saveDir() string {
	return cmp.Or(t.args.Save, filepath.Join(t.location().Path(), checkpointsName))
}

// openStore makes the Store of checkpoints. It accesses no file.
func (t *trainer) openStore() (err error) {
	t.store, err = checkpoint.NewStore(t.saveDir(), checkpoint.Settings{
		Keep: t.args.KeepLast, KeepEvery: int64(t.args.KeepEvery), KeepBest: t.args.KeepBest, Check: checkState,
	})
	return err
}

// recordRun writes the resolved configuration, unless the run is already complete.
func (t *trainer) recordRun() error {
	if t.state.Step >= t.args.TrainIters {
		return nil
	}
	resolved, err := formats.YAML{}.Render(t.tc.Experiment.Export(), false)
	if err != nil {
		return fmt.Errorf("write the resolved configuration: %w", err)
	}
	if err := t.dir.WriteFile(rundir.ConfigName, resolved); err != nil {
		return err
	}
	for _, raw := range t.tokenizerFiles() {
		if err := t.dir.WriteFile(raw.Name, raw.Data); err != nil {
			return err
		}
	}
	if err := t.writeJSON(dataFile, t.record); err != nil {
		return err
	}
	return t.writeJSON(rundir.ManifestName, t.tc.Manager.Manifest())
}

func (t *trainer) warn(warnings []string) {
	for _, w := range warnings {
		t.tc.Log.Warn(w)
	}
}

// step trains on the next batch and reports the result. When late ends, it gives up at a point at
// which only the current step is lost.
func (t *trainer) step(ctx, late context.Context) error {
	begin := time.Now()
	s := backend.Step{Step: t.state.Step + 1}
	t.progress.Enter(backend.PhaseData, s.Step)
	if rows := t.args.RampupBatchSize.At(t.state.Position, t.args.GlobalBatchSize); rows != t.batch.Rows() {
		t.batch = model.NewBatch(rows, t.args.SeqLength)
	}
	if err := t.points.dataOrder.Func()(&t.batch); err != nil {
		return err
	}
	s.LR = t.points.schedule.Func()(t.updates(s.Step))
	t.clock.beginStep()
	t.watch.Begin()
	err := t.train(t.ending(ctx, late), &s)
	if err != nil {
		return err
	}
	if finite(s.Loss) { // which is that of the weights in the checkpoint that is being written
		t.judgeSave(nil)
	} else if err := t.judgeByLoss(); err != nil {
		return err
	}
	s.Duration = time.Since(begin)
	s.Reference, s.ReferenceShare = t.watch.End(s.Duration), t.watch.Share()
	if s.Device, err = t.clock.endStep(s.Duration); err != nil {
		return err
	}
	s.Tokens, s.MemoryBytes = t.batch.Rows()*t.args.SeqLength, memory.InUse(t.tc.Device)
	s.TokensPerSecond = float64(s.Tokens) / s.Duration.Seconds()
	t.state.Step, t.state.Position = s.Step, t.sampler.Position()
	known := finite(s.Loss) && finite(s.GradNorm) // not in a step that is passed over
	if known {
		t.state.Update(s)
	}
	t.updating, t.state.LossScale = false, t.lossScale
	err = t.validate(late, &s)
	if known {
		t.state.Update(s) // with what the evaluation found
	}
	if err != nil {
		return err
	}
	if s.Skipped && t.lossScale != nil && s.GradNorm == 0 {
		t.tc.Log.Warn(fmt.Sprintf("step %d is skipped (%d so far): gradients overflow in fp16; the loss scale is now %v", s.Step, t.lossScale.Skipped, s.LossScale))
	}
	if t.world.Leads() && known {
		if err := t.write(rundir.RecordOf(s)); err != nil {
			return err
		}
	}
	t.tc.Observer.StepDone(s)
	return nil
}

// write writes the record of a step to the run directory and to the trackers.
func (t *trainer) write(r rundir.Record) error {
	if err := t.metrics.Append(r); err != nil {
		return err
	}
	scalars := r.Scalars()
	t.track.Log(r.Step, scalars...)
	if t.events == nil {
		return nil
	}
	return t.events.Scalars(r.Step, scalars...)
}

// Cleanup writes the final files of the run and releases everything.
func (t *trainer) Cleanup(cause error) error {
	t.progress.Enter(backend.PhaseSave, t.state.Step)
	var faults []error
	if !t.started.IsZero() {
		faults = append(faults, t.finish(cause))
	}
	if t.dir != nil {
		t.track.End(true)
		if t.metrics != nil {
			faults = append(faults, t.metrics.Close())
		}
		if t.events != nil {
			faults = append(faults, t.events.Close())
		}
		t.tc.LogFile.Detach()
		if t.logTo != nil {
			faults = append(faults, t.logTo.Close())
		}
		if t.store != nil {
			faults = append(faults, t.store.Close())
		}
		faults = append(faults, t.dir.Close())
	}
	if t.data != nil {
		faults = append(faults, t.data.Close())
	}
	faults = append(faults, t.clock.Close(), t.closeReference(), t.close())
	t.world.Close()
	return errors.Join(faults...)
}

// finish reports the end and writes the plot and the dispatch report. A run without steps leaves
// these as they are.
func (t *trainer) finish(cause error) error {
	r := t.result
	r.RunLosses, r.LastStep, r.Duration, r.Err = t.state.RunLosses, t.state.Step, time.Since(t.started), cause
	r.Impls, r.Unusable, r.Reference = t.tc.Manager.Stats(), t.tc.Manager.Unusable(), t.watch.Total()
	r.PutBack, r.Health = t.tc.Manager.PolicyStack().PutBack(), t.health()
	r.Canaries = t.tc.Manager.Canaries()
	r.Ignored, r.Patches, r.Restarts = ignored(t.tc), t.tc.PatchResults, backend.ReadRestarts(t.tc.Environ)
	r.Tracking = t.track.End(cause != nil && !errors.Is(cause, backend.ErrInterrupted))
	var faults []error
	used, err := t.clock.use()
	if r.Device = used; cause == nil { // after an error the device may be lost
		faults = append(faults, err)
	}
	if t.state.Step >= r.FirstStep && t.world.Leads() {
		records, err := t.metrics.Records()
		faults = append(faults, err)
		if len(records) > 0 {
			faults = append(faults, t.dir.PlotLoss(rundir.Losses{Name: r.Name, Unit: r.LossIn(), Records: records}))
		}
		faults = append(faults, t.writeDispatch(r))
	}
	t.tc.Observer.RunEnded(r)
	return errors.Join(faults...)
}

// dispatchReport is the content of dispatch.json.
type dispatchReport struct {
	Framework  string                  `json:"framework"`
	Policy     oppolicy.Policy         `json:"policy"`
	Generation uint64                  `json:"generation"`
	Ops        []opmanager.Explanation `json:"ops"`
	Impls      []opmanager.ImplStats   `json:"impls"`
	Device     *backend.DeviceUse      `json:"device,omitempty"`
	Patches    []backend.PatchResult   `json:"patches"`
}

func (t *trainer) writeDispatch(r backend.Result) error {
	m := t.tc.Manager
	return t.writeJSON(rundir.DispatchName, dispatchReport{
		Framework: Framework, Policy: m.Policy(), Generation: m.Generation(), Ops: m.ExplainAll(), Impls: r.Impls, Device: r.Device, Patches: t.tc.PatchResults,
	})
}

func (t *trainer) writeJSON(name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return t.dir.WriteFile(name, append(text, '\n'))
}

var (
	_ backend.Trainer  = (*trainer)(nil)
	_ patch.Extensible = (*trainer)(nil)
)
