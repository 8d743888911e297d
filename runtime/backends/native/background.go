package native

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/internal/native/memory"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/shards"
	"github.com/primus-fl/primus/internal/native/weights"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/internal/sysmem"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/tensor"
)

const saving = "save a checkpoint"

// ongoing is the checkpoint that is being written.
type ongoing struct {
	*shards.Job
	step   int
	mark   checkpoint.Mark
	batch  model.Batch // micro batch for the loss of the weights
	judged bool        // the loss of the weights is known

	begun time.Time
	pause time.Duration // of the training; 0 while it waits for the end
}

// save writes a checkpoint of the step, together with the other ranks.
func (t *trainer) save() error {
	if err := t.awaitSave(); err != nil {
		return err
	}
	begin := time.Now()
	t.progress.Enter(backend.PhaseSave, t.state.Step)
	if err := t.gathered(); err != nil {
		return err
	}
	if err := t.world.Agree("check the weights", t.healthy()); err != nil {
		return err
	}
	if w := t.savers(); w != nil {
		return t.saveWith(w, begin)
	}
	t.savedStep = t.state.Step
	return nil
}

// savers returns the ranks with which this one saves, nil if it does not.
func (t *trainer) savers() *world.World {
	switch {
	case t.together:
		return t.world
	case t.world.Leads():
		return world.Single()
	}
	return nil
}

// saveAlone writes a checkpoint on the first rank, while other ranks may do anything else.
func (t *trainer) saveAlone() error {
	if t.shard != nil {
		return errors.New("this rank has a part of the model, or of the state of the optimizer, only")
	}
	begin := time.Now()
	if err := t.healthy(); err != nil {
		return err
	}
	return t.saveWith(world.Single(), begin)
}

// saveWith writes a checkpoint with the ranks of w, for which training has stopped at begin.
func (t *trainer) saveWith(w *world.World, begin time.Time) (err error) {
	files, release, err := t.files(w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := t.beginSave(w, files, nil); err != nil {
		return err
	}
	t.saving.begun = begin
	t.judgeSave(nil)
	return t.awaitSave()
}

// saveAside copies what a checkpoint of the step is made of, and lets it be written while the run
// goes on. Without the memory for a copy it is save.
func (t *trainer) saveAside() error {
	if o := t.saving; o != nil {
		t.tc.Log.Info(fmt.Sprintf("the checkpoint of step %d waits for that of step %d, which is still being written: a save takes longer than save_interval", t.state.Step, o.step))
		if err := t.awaitSave(); err != nil {
			return err
		}
	}
	begin := time.Now()
	t.progress.Enter(backend.PhaseSave, t.state.Step)
	if err := t.gathered(); err != nil {
		return err
	}
	w := t.savers()
	if w == nil {
		t.savedStep = t.state.Step
		return nil
	}
	files, release, err := t.files(w)
	if err != nil {
		return err
	}
	fits, err := t.copyFits(w, files)
	if err == nil && fits {
		files = t.copies.Take(files, t.manager.Exec().Pool())
	}
	if err = errors.Join(err, release()); err != nil {
		return err
	}
	if !fits {
		return t.save()
	}
	step := t.state.Step
	if err := t.beginSave(w, files, func() error { return t.finiteFiles(step, files) }); err != nil {
		return err
	}
	t.saving.begun, t.saving.pause = begin, time.Since(begin)
	return nil
}

// reserveCopies makes memory for the copies that saveAside makes, if the run is going to, since new
// memory takes several times as long as a copy. Merged adapters are too large to be made for that.
func (t *trainer) reserveCopies() error {
	w := t.savers()
	if w == nil || !t.args.AsyncSave || t.args.SaveInterval == 0 || t.state.Step+t.args.SaveInterval >= t.args.TrainIters || t.args.Adapts() {
		return nil
	}
	files, release, err := t.files(w)
	if err != nil {
		return err
	}
	fits, err := t.copyFits(w, files)
	if err == nil && fits {
		t.copies.Reserve(files)
	}
	return errors.Join(err, release())
}

// copyFits reports whether there is memory for a copy of what each rank of w writes.
func (t *trainer) copyFits(w *world.World, files []shards.File) (bool, error) {
	size, lack := float64(shards.Size(files)), []float64{0}
	if !t.copies.Reserved() {
		if spare := t.spareMemory(); size > spare {
			t.tc.Log.Warn(fmt.Sprintf("async_save: training waits while checkpoints are written: a copy of the state takes %s, and there is memory for %s; give async_save=false, or lower the memory of training", sysmem.Text(size), sysmem.Text(max(spare, 0))))
			lack[0], t.args.AsyncSave = 1, false
		}
	}
	if err := w.Largest(saving, lack); err != nil {
		return false, err
	}
	if lack[0] > 0 {
		t.args.AsyncSave = false // on all ranks
	}
	return t.args.AsyncSave, nil
}

// spareMemory returns the bytes of host memory that training does not need, if they are known.
func (t *trainer) spareMemory() float64 {
	limit, err := sysmem.Read()
	if err != nil {
		return float64(1 << 62)
	}
	if memory.Known(t.tc.Device) { // training takes its memory
		return float64(limit.Bytes)
	}
	parts, err := t.args.memoryParts(t.manager, t.tc.Device, float64(limit.Bytes), t.world.Ranks)
	if err != nil {
		return float64(limit.Bytes)
	}
	return float64(limit.Bytes) - memory.Sum(parts).Total
}

// finiteFiles is finiteWeights for the pieces of files.
func (t *trainer) finiteFiles(step int, files []shards.File) error {
	for _, f := range files {
		what := map[string]string{optimizerFile: "state of the optimizer ", weightsFile: "weight ", weights.WeightsFile: "weight ", averageFile: "average of the weight "}[f.Name]
		if what == "" || t.args.AllowNonFinite && f.Name != optimizerFile {
			continue
		}
		for name, values := range f.Pieces {
			if v, found := firstNonFinite(values); found {
				piece, err := tensor.FromSlice(values)
				if err != nil {
					return err
				}
				return notFinite(step, what, name, v, piece)
			}
		}
	}
	return nil
}

// beginSave begins to write a checkpoint of the step. The pieces of the files must not change until
// it is written, and check is called before that.
func (t *trainer) beginSave(w *world.World, files []shards.File, check func() error) error {
	t.state.Health = t.monitor.Snapshot()
	t.state.Parameters, t.state.CPUClass = t.compared(), t.args.cpuClass()
	t.state.Canaries = slices.DeleteFunc(t.manager.Canaries(), func(c opmanager.Canary) bool { return c.State == opmanager.CanaryTrying })
	text, err := json.MarshalIndent(t.state, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", saving, err)
	}
	metrics := t.metrics // which a run that goes back replaces
	o := &ongoing{step: t.state.Step, mark: t.mark(), batch: t.batch.Slice(0, t.args.MicroBatchSize).Clone()}
	o.Job = shards.Begin(w, t.store, int64(o.step), files, check, func(w *checkpoint.Writer) error {
		w.Mark(o.mark)
		if err := metrics.Sync(); err != nil { // a run that goes on from here has the lines up to here
			return err
		}
		if t.args.Adapts() {
			if err := w.JSON(weights.ConfigFile, weights.Config(t.args.Config, t.args.LoadHF)); err != nil {
				return err
			}
		}
		if err := w.JSON(configFile, t.args.modelConfig()); err != nil {
			return err
		}
		for _, raw := range t.tokenizerFiles() {
			if err := w.File(raw.Name, func(out io.Writer) error { _, err := out.Write(raw.Data); return err }); err != nil {
				return err
			}
		}
		return w.File(stateFile, func(out io.Writer) error { _, err := out.Write(append(text, '\n')); return err })
	})
	t.saving = o
	return nil
}

// judgeSave says whether the checkpoint that is being written, if any, is to be completed. Only the
// first judgement counts.
func (t *trainer) judgeSave(err error) {
	if o := t.saving; o != nil && !o.judged {
		o.judged = true
		o.Judge(err)
	}
}

// judgeByLoss judges the checkpoint that is being written by the loss of the weights, which no step
// after it has changed.
func (t *trainer) judgeByLoss() error {
	o := t.saving
	if o == nil || o.judged {
		return nil
	}
	var err error
	if o.step == t.state.Step && !t.updating {
		err = o.World.Agree("check the weights", t.finiteLoss(o.batch))
	}
	t.judgeSave(err)
	if _, lost := errors.AsType[*world.Error](err); lost {
		return err
	}
	return nil
}

// followSave completes the checkpoint that is being written as far as this is possible without
// waiting.
func (t *trainer) followSave() error {
	o := t.saving
	if o == nil || o.World.Alone() && !o.IsReady() || !o.World.Alone() && !t.allReady {
		return nil
	}
	if err := o.Next(); err != nil || o.Ended {
		return t.saved(err)
	}
	return nil
}

// awaitSave returns when the checkpoint that is being written is complete.
func (t *trainer) awaitSave() error {
	o := t.saving
	if o == nil {
		return nil
	}
	t.progress.Enter(backend.PhaseSave, o.step)
	if err := t.judgeByLoss(); err != nil {
		return t.saved(errors.Join(err, o.GiveUp()))
	}
	return t.saved(o.Wait())
}

// endSave ends the checkpoint that is being written, while other ranks may do anything else.
func (t *trainer) endSave() {
	o := t.saving
	if o == nil {
		return
	}
	var err error
	if o.World.Alone() {
		err = t.awaitSave()
	} else {
		err = t.saved(o.GiveUp())
		t.saveFailed = false // this rank may still save alone
	}
	if err != nil {
		t.tc.Log.Warn(fmt.Sprintf("the checkpoint of step %d, which was being written, could not be completed before the end: %v", o.step, err))
	}
}

// saved reports the end of the checkpoint that was being written.
func (t *trainer) saved(err error) error {
	o := t.saving
	t.saving = nil
	if t.saveFailed = err != nil; t.saveFailed {
		return err
	}
	t.savedStep = o.step
	if !t.world.Leads() {
		return nil
	}
	t.warn(o.Saved.Warnings)
	for _, path := range o.Saved.Kept {
		t.tc.Log.Warn("something that is not of this run had the name of the new checkpoint; it is kept in " + path)
	}
	took := time.Since(o.begun)
	about := []any{"step", o.step, "path", o.Saved.Path, "judgement", o.mark.Judgement, "pause", cmp.Or(o.pause, took).Round(time.Millisecond)}
	if o.pause > 0 {
		about = append(about, "took", took.Round(time.Millisecond))
	}
	t.tc.Log.Info("saved checkpoint", about...)
	if c, ok := t.tc.Observer.(backend.CheckpointObserver); ok {
		c.CheckpointSaved(o.step)
	}
	return nil
}
