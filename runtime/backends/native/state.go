package native

import (
	"errors"

	"github.com/primus-fl/primus/internal/cpufeat"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/native/checkpoint"
	"github.com/primus-fl/primus/runtime/backends/native/lora"
	"github.com/primus-fl/primus/runtime/backends/native/model"
	"github.com/primus-fl/primus/tensor"
	"github.com/primus-fl/primus/tensor/safetensors"
)

// The files of a checkpoint.
const (
	weightsFile   = "model.safetensors"
	optimizerFile = "optimizer.safetensors"
	configFile    = "config.json"
	stateFile     = "trainer_state.json"
)

// state is what a run needs besides weights and moments to continue as if it had not stopped. The
// order of the data is a function of seed and position, so these two are the whole state of the
// random numbers.
type state struct {
	Step         int      `json:"step"`
	Seed         int64    `json:"seed"`
	Position     uint64   `json:"consumed_samples"`
	Data         string   `json:"data_fingerprint"`
	Loss         float64  `json:"loss"`
	CrossEntropy *float64 `json:"cross_entropy,omitempty"`
	FirstLoss    float64  `json:"first_loss"`
	ValidLoss    *float64 `json:"valid_loss,omitempty"`
	ValidTokens  int      `json:"valid_tokens,omitempty"`

	// CPUClass is the class of the CPU that computed the weights. The bits of results depend on it.
	CPUClass   string         `json:"cpu_class,omitempty"`
	Parameters map[string]any `json:"parameters,omitempty"` // the parameters that a resumed run is compared with
}

// cpuClass returns the class of this CPU for the numbers of the run.
func (a *Args) cpuClass() string { return cpufeat.Class(a.Compute() != tensor.F32) }

// save writes a checkpoint of the step, which the first rank does for all.
func (t *trainer) save() error {
	if !t.world.Leads() {
		t.savedStep = t.state.Step
		return nil
	}
	if err := t.healthy(); err != nil {
		return err
	}
	t.state.Parameters, t.state.CPUClass = t.compared(), t.args.cpuClass()
	saved, err := t.store.Save(int64(t.state.Step), func(w *checkpoint.Writer) error {
		if err := t.saveWeights(w); err != nil {
			return err
		}
		optimizer, err := entries(t.optimizerState())
		if err != nil {
			return err
		}
		if err := w.Safetensors(optimizerFile, optimizer, nil); err != nil {
			return err
		}
		if err := w.JSON(configFile, t.args.HFConfig()); err != nil {
			return err
		}
		return w.JSON(stateFile, t.state)
	})
	if t.saveFailed = err != nil; t.saveFailed {
		return err
	}
	t.savedStep = t.state.Step
	t.warn(saved.Warnings)
	for _, path := range saved.Kept {
		t.tc.Log.Warn("what had the name of the new checkpoint and was not of this run is kept in " + path)
	}
	t.tc.Log.Info("saved checkpoint", "step", t.state.Step, "path", saved.Path)
	if o, ok := t.tc.Observer.(backend.CheckpointObserver); ok {
		o.CheckpointSaved(t.state.Step)
	}
	return nil
}

// saveWeights writes the weights. Those of a model with adapters have the adapters merged, so that
// they are a model by themselves, and the adapters follow as PEFT writes them.
func (t *trainer) saveWeights(w *checkpoint.Writer) (err error) {
	tensors := t.model.Tensors()
	if t.args.Adapts() {
		merged, release, err := t.model.Merged(t.manager)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, release()) }()
		tensors = merged
		adapters, err := entries(lora.Named(t.model))
		if err != nil {
			return err
		}
		if err := w.Safetensors(lora.WeightsFile, adapters, map[string]string{"format": "pt"}); err != nil {
			return err
		}
		if err := w.JSON(lora.ConfigFile, lora.Config(t.args.Config, t.args.LoadHF)); err != nil {
			return err
		}
	}
	weights, err := entries(tensors)
	if err != nil {
		return err
	}
	return w.Safetensors(weightsFile, weights, map[string]string{"format": "pt"})
}

// optimizerState returns what the optimizer keeps of the weights, under the names in a checkpoint.
func (t *trainer) optimizerState() []model.Named {
	var all []model.Named
	for _, s := range t.optimizer.State() {
		for _, n := range t.model.SplitTrained(s.Tensors) {
			if n.Tensor == nil {
				continue
			}
			all = append(all, model.Named{Name: n.Name + "." + s.Name, Tensor: n.Tensor})
		}
	}
	return all
}

func entries(tensors []model.Named) ([]safetensors.Entry, error) {
	all := make([]safetensors.Entry, 0, len(tensors))
	for _, n := range tensors {
		e, err := safetensors.FromTensor(n.Name, n.Tensor)
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}
