package native

import (
	"errors"

	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/native/checkpoint"
	"github.com/primus-fl/primus/runtime/backends/native/checkpoint/safetensors"
	"github.com/primus-fl/primus/runtime/backends/native/model"
	"github.com/primus-fl/primus/tensor"
)

// The files of a checkpoint.
const (
	weightsFile   = "model.safetensors"
	optimizerFile = "optimizer.safetensors"
	configFile    = "config.json"
	stateFile     = "trainer_state.json"
)

// state is what a run needs besides weights and moments to go on as if it had not stopped. The order of the data is a
// function of seed and position, so these two are the whole state of the random numbers.
type state struct {
	Step      int      `json:"step"`
	Seed      int64    `json:"seed"`
	Position  uint64   `json:"consumed_samples"`
	Data      string   `json:"data_fingerprint"`
	Loss      float64  `json:"loss"`
	FirstLoss float64  `json:"first_loss"`
	ValidLoss *float64 `json:"valid_loss,omitempty"`
}

// save writes a checkpoint of the step.
func (t *trainer) save() error {
	saved, err := t.store.Save(int64(t.state.Step), func(w *checkpoint.Writer) error {
		weights, err := entries(t.model.Tensors(), "")
		if err != nil {
			return err
		}
		if err := w.Safetensors(weightsFile, weights, map[string]string{"format": "pt"}); err != nil {
			return err
		}
		moments, err := t.moments()
		if err != nil {
			return err
		}
		if err := w.Safetensors(optimizerFile, moments, nil); err != nil {
			return err
		}
		if err := w.JSON(configFile, t.model.HFConfig()); err != nil {
			return err
		}
		return w.JSON(stateFile, t.state)
	})
	if t.saveFailed = err != nil; t.saveFailed {
		return err
	}
	t.savedStep = t.state.Step
	t.warn(saved.Warnings)
	t.tc.Log.Info("saved checkpoint", "step", t.state.Step, "path", saved.Path)
	if o, ok := t.tc.Observer.(backend.CheckpointObserver); ok {
		o.CheckpointSaved(t.state.Step)
	}
	return nil
}

func (t *trainer) moments() ([]safetensors.Entry, error) {
	m, err := entries(t.model.Split(t.adam.M), ".exp_avg")
	if err != nil {
		return nil, err
	}
	v, err := entries(t.model.Split(t.adam.V), ".exp_avg_sq")
	return append(m, v...), err
}

func entries(tensors []model.Named, suffix string) ([]safetensors.Entry, error) {
	all := make([]safetensors.Entry, 0, len(tensors))
	for _, n := range tensors {
		e, err := safetensors.FromTensor(n.Name+suffix, n.Tensor)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// restore loads the checkpoint that the run goes on from, if there is one, and keeps what an earlier run has left.
func (t *trainer) restore() error {
	c, err := t.findCheckpoint()
	if err != nil {
		return err
	}
	if c != nil {
		if err := t.loadFrom(c); err != nil {
			return err
		}
	}
	return t.keepEarlier(c)
}

// loadFrom sets weights, moments and state to those of a checkpoint.
func (t *trainer) loadFrom(c *checkpoint.Checkpoint) error {
	weights := map[string]*tensor.Tensor{}
	for _, n := range t.model.Tensors() {
		weights[n.Name] = n.Tensor
	}
	moments := map[string]*tensor.Tensor{}
	for i, n := range t.model.Split(t.adam.M) {
		moments[n.Name+".exp_avg"] = n.Tensor
		moments[n.Name+".exp_avg_sq"] = t.model.Split(t.adam.V)[i].Tensor
	}
	var s state
	if err := c.JSON(stateFile, &s); err != nil {
		return err
	}
	if err := t.checkSame(c, &s); err != nil {
		return err
	}
	err := load(c, weightsFile, weights)
	if differs, ok := errors.AsType[*checkpoint.ConfigError](err); ok && t.args.Load == "" {
		return t.anotherRun(c, "has another model: "+differs.Error())
	}
	if err != nil {
		return err
	}
	if err := load(c, optimizerFile, moments); err != nil {
		return err
	}
	s.Seed, s.Data = t.args.Seed, t.set.Fingerprint()
	t.state = s
	t.savedStep = s.Step
	t.sampler.Seek(s.Position)
	if err := t.checkLeft(c); err != nil {
		return err
	}
	t.tc.Log.Info("resuming from checkpoint", "step", s.Step, "path", c.Path())
	return nil
}

func load(c *checkpoint.Checkpoint, name string, into map[string]*tensor.Tensor) error {
	f, err := c.Safetensors(name)
	if err != nil {
		return err
	}
	return errors.Join(checkpoint.Load(f, into), f.Close())
}

// findCheckpoint returns the checkpoint to go on from: that of load when it is given, else the run's own, nil for none.
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
		return c, err
	default:
		return checkpoint.Open(t.args.Load)
	}
}
