package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/isa"
	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/internal/native/health"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/optim"
	"github.com/primus-fl/primus/internal/native/weights"
	"github.com/primus-fl/primus/tensor"
)

// restore loads the checkpoint from which the run continues, if there is one, and keeps the files
// of an earlier run.
func (t *trainer) restore() error {
	if t.args.Save != "" { // the run directory is locked already
		if err := t.acquire(); err != nil {
			return err
		}
	}
	name, err := t.readName()
	if err != nil {
		return err
	}
	if t.args.Save != "" {
		t.store.SetRun(name)
	}
	c, err := t.findCheckpoint()
	if err != nil {
		return err
	}
	if err := t.args.checkStart(t.tc, c != nil); err != nil {
		return err
	}
	if t.args.LoadHF != "" && !t.divided() && (c == nil || t.args.Adapts()) { // checkpoints have adapters without what they adapt
		if err := t.loadWeights(); err != nil {
			return err
		}
	}
	if c != nil {
		if err := t.loadFrom(c); err != nil {
			return err
		}
	}
	goesOn, err := t.isNewest(c)
	if err != nil {
		return err
	}
	if !goesOn {
		t.state.Health = health.State{}
		t.savedStep = 0 // what was loaded is not among the checkpoints of this run
		if err := t.keepEarlier(); err != nil {
			return err
		}
	}
	if err := t.takeName(name, c, goesOn); err != nil {
		return err
	}
	return t.acquire()
}

// loadWeights sets the weights to those of load_hf.
func (t *trainer) loadWeights() error {
	path, err := loadFolder(t.args.LoadHF, t.model, t.found())
	if err == nil {
		t.tc.Log.Info("starting from the weights of a folder", "path", path, "parameters", t.args.NumParameters())
	}
	return err
}

// found returns what takes weights that are not finite, nil if they are not allowed.
func (t *trainer) found() func(*weights.NonFiniteError) {
	if !t.args.AllowNonFinite {
		return nil
	}
	return func(e *weights.NonFiniteError) { t.tc.Log.Warn(e.Error() + " (allow_nonfinite_weights)") }
}

// loadFolder fills a model from a folder of weights and returns where they are. An interrupt does
// not end it, nor that of a checkpoint: other ranks wait.
func loadFolder(dir string, into *model.Model, found func(*weights.NonFiniteError)) (path string, err error) {
	folder, err := weights.Open(context.Background(), dir, weights.Settings{Found: found})
	if err != nil {
		return "", fmt.Errorf("load_hf: %w", err)
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	if err := folder.Load(into); err != nil {
		if _, ok := errors.AsType[*weights.NonFiniteError](err); ok {
			return "", fmt.Errorf("load_hf: %w: repair the weights, or give allow_nonfinite_weights=true", err)
		}
		return "", fmt.Errorf("load_hf: %w", err)
	}
	into.WeightsChanged()
	return folder.Path(), nil
}

// acquire locks the directory of checkpoints until Cleanup.
func (t *trainer) acquire() error {
	warning, err := t.store.Acquire()
	if locked, ok := errors.AsType[*durable.LockedError](err); ok {
		return fmt.Errorf("save: another run saves in %s (process %d): give this run a directory of its own: %w", t.store.Dir(), locked.PID, err)
	}
	if warning != "" {
		t.tc.Log.Warn(warning)
	}
	return err
}

// loadFrom sets weights, moments and state to those of a checkpoint.
func (t *trainer) loadFrom(c *checkpoint.Checkpoint) error {
	s, err := readState(c)
	if err != nil {
		return err
	}
	if err := t.checkSame(c, s); err != nil {
		return err
	}
	if err := t.checkModel(c); err != nil {
		return err
	}
	file, into := weightsFile, t.model.Tensors()
	if t.args.Adapts() {
		file, into = weights.WeightsFile, weights.Named(t.model)
		if !c.Has(file) {
			return fmt.Errorf("checkpoint %s has weights without adapters, and lora_rank is %d: begin with load_hf=%s, or give lora_rank=0", c.Path(), t.args.Rank, c.Path())
		}
	} else if c.Has(weights.WeightsFile) {
		return fmt.Errorf("checkpoint %s has adapters, and lora_rank is 0: give the lora_ parameters that it was trained with, or begin with its merged weights by load_hf=%s", c.Path(), c.Path())
	}
	if t.from = c; t.weights == nil {
		err = load(c, file, into)
	}
	if differs, ok := errors.AsType[*checkpoint.ConfigError](err); ok && t.args.Load == "" {
		return t.anotherRun(c, "has another model: "+differs.Error())
	}
	if err != nil {
		return err
	}
	if err := t.checkOptimizer(c, s.Parameters); err != nil {
		return err
	}
	switch {
	case t.average == nil:
	case t.shard == nil:
		if err := load(c, averageFile, t.averages()); err != nil {
			return fmt.Errorf("ema_decay: %w", err)
		}
	case !c.Has(averageFile):
		return fmt.Errorf("ema_decay: checkpoint %s has no %s", c.Path(), averageFile)
	}
	if scales := t.model.Scales(); scales != nil && c.Has(scalesFile) { // else they begin at 1
		if err := load(c, scalesFile, scales); err != nil {
			return fmt.Errorf("fp8_amax_history_len, fp8: %w", err)
		}
	}
	if t.shard == nil {
		err = load(c, optimizerFile, t.optimizerState())
	}
	if err != nil {
		return err
	}
	if err := t.checkLoaded(c.Path()); err != nil {
		return err
	}
	t.logChanged(c, s.Parameters)
	if class := t.args.cpuClass(); s.CPUClass != "" && s.CPUClass != class {
		t.tc.Log.Warn(fmt.Sprintf("%s was saved on a CPU of class %s and this one is of class %s: kernels round differently here, so the last bits of losses and weights will differ from those of a run that stays there; where this CPU has the instructions, %s=%s uses the kernels of that class", c.Path(), s.CPUClass, class, isa.Env, isa.OfClass(s.CPUClass)))
	}
	s.Seed, s.Data = t.args.Seed, t.data.Fingerprint()
	t.state = *s
	t.savedStep = s.Step
	t.sampler.Seek(s.Position)
	if err := t.checkRemaining(c, s.Step); err != nil {
		return err
	}
	t.tc.Log.Info("resuming from checkpoint", "step", s.Step, "path", c.Path())
	return nil
}

// checkOptimizer returns an error if the checkpoint has the state of another optimizer.
func (t *trainer) checkOptimizer(c *checkpoint.Checkpoint, saved map[string]any) error {
	before, _ := saved["optimizer"].(string)
	own, other := cmp.Or(t.args.Optimizer, optim.Adam), cmp.Or(optim.Kind(before), optim.Adam)
	if own == other {
		return nil
	}
	return fmt.Errorf("checkpoint %s has no state of this optimizer: optimizer: given %s, and it was trained with %s: give optimizer=%s, or load=none to start over", c.Path(), own, other, other)
}

// readState returns the state of a checkpoint.
func readState(c *checkpoint.Checkpoint) (*state, error) {
	s := &state{}
	if err := c.JSON(stateFile, s); err != nil {
		return nil, err
	}
	return s, s.check(c)
}

// checkState returns an error if the state in a checkpoint contradicts the checkpoint.
func checkState(c *checkpoint.Checkpoint) error {
	_, err := readState(c)
	return err
}

func load(c *checkpoint.Checkpoint, name string, into []model.Named) error {
	tensors := map[string]*tensor.Tensor{}
	for _, n := range into {
		tensors[n.Name] = n.Tensor
	}
	f, err := c.Safetensors(context.Background(), name)
	if err != nil {
		return err
	}
	return errors.Join(checkpoint.Load(f, tensors), f.Close())
}

// findCheckpoint returns the checkpoint to continue from: that of load, or else the newest of the
// run itself, nil if there is none.
func (t *trainer) findCheckpoint() (*checkpoint.Checkpoint, error) {
	switch t.args.Load {
	case loadNone:
		return nil, nil
	case "":
		c, warnings, err := t.store.Latest()
		t.warn(warnings)
		if errors.Is(err, checkpoint.ErrNone) {
			return nil, nil
		}
		if owner, ok := errors.AsType[*checkpoint.OwnerError](err); ok {
			return nil, fmt.Errorf("%w: give save a directory of its own, load=%s to go on from that run, or load=none to start over beside it", owner, owner.Dir)
		}
		return c, err
	default:
		c, err := checkpoint.Open(context.Background(), t.args.Load)
		if errors.Is(err, checkpoint.ErrNone) && sameDir(t.args.Load, t.store.Dir()) {
			t.tc.Log.Info(fmt.Sprintf("%s is the directory of load and of save and holds no checkpoint yet: training starts from new weights", t.store.Dir()))
			return nil, nil
		}
		if err != nil {
			return nil, describe(t.tc, fmt.Errorf("load: %w", err))
		}
		return c, nil
	}
}
