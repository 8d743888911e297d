package native

import (
	"errors"

	"github.com/primus-fl/primus/internal/cpufeat"
	"github.com/primus-fl/primus/internal/native/health"
	"github.com/primus-fl/primus/internal/native/model"
	"github.com/primus-fl/primus/internal/native/optim"
	"github.com/primus-fl/primus/internal/native/shards"
	"github.com/primus-fl/primus/internal/native/weights"
	"github.com/primus-fl/primus/internal/native/world"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/tensor"
)

// The files of a checkpoint.
const (
	weightsFile   = "model.safetensors"
	averageFile   = "model_ema.safetensors"
	optimizerFile = "optimizer.safetensors"
	scalesFile    = "fp8_scales.safetensors"
	configFile    = "config.json"
	stateFile     = "trainer_state.json"
)

// state is what a run needs besides weights and moments to continue as if it had not stopped. The
// order of the data is a function of seed and position, so these two are the whole state of the
// random numbers.
type state struct {
	Step     int    `json:"step"`
	Seed     int64  `json:"seed"`
	Position uint64 `json:"consumed_samples"`
	Data     string `json:"data_fingerprint"`
	backend.RunLosses

	LossScale *optim.LossScale `json:"loss_scale,omitempty"` // with fp16
	Best      *optim.BestLoss  `json:"best,omitempty"`       // with early stopping

	Health health.State `json:"health"`

	Canaries []opmanager.Canary `json:"canaries,omitempty"` // whose trials have ended

	// CPUClass is the class of the CPU that computed the weights. The bits of results depend on it.
	CPUClass   string         `json:"cpu_class,omitempty"`
	Parameters map[string]any `json:"parameters,omitempty"` // the parameters that a resumed run is compared with
}

// cpuClass returns the class of this CPU for the numbers of the run.
func (a *Args) cpuClass() string { return cpufeat.Class(a.Compute() != tensor.F32) }

// files returns the files of tensors of a checkpoint, with what this rank writes of them. Weights
// of a model with adapters have the adapters merged, so that they are a model by themselves, and
// the adapters follow as PEFT writes them. release frees the merged weights.
func (t *trainer) files(w *world.World) (files []shards.File, release func() error, err error) {
	release = func() error { return nil }
	defer func() {
		if err != nil && release != nil {
			err = errors.Join(err, release())
		}
	}()
	format := map[string]string{"format": "pt"}
	whole := func(name string, tensors []model.Named, metadata map[string]string) {
		if err == nil {
			var f shards.File
			f, err = shards.Whole(w, name, tensors, metadata)
			files = append(files, f)
		}
	}
	spread := func(name string, s *shards.Shard, places func(*model.Model) []model.Place, states []optim.State, metadata map[string]string) {
		if err == nil {
			var f shards.File
			f, err = t.spread(name, s, places, states, metadata)
			files = append(files, f)
		}
	}
	switch {
	case t.weights == nil && t.args.Adapts():
		var tensors []model.Named
		if tensors, release, err = t.model.Merged(t.manager); err != nil {
			return nil, nil, err
		}
		whole(weights.WeightsFile, weights.Named(t.model), format)
		whole(weightsFile, tensors, format)
	case t.weights == nil:
		whole(weightsFile, t.model.Tensors(), format)
	case t.args.Adapts():
		var merged *shards.Shard
		if merged, release, err = t.merged(); err != nil {
			return nil, nil, err
		}
		spread(weights.WeightsFile, t.weights, weights.Places, t.weights.Values(), format)
		spread(weightsFile, merged, (*model.Model).WeightPlaces, merged.Values(), format)
	default:
		spread(weightsFile, t.weights, (*model.Model).Places, t.weights.Values(), format)
	}
	switch {
	case t.average == nil:
	case t.shard == nil:
		whole(averageFile, t.averages(), format)
	default:
		spread(averageFile, t.shard, (*model.Model).Places, t.average.State(), format)
	}
	if scales := t.model.Scales(); scales != nil {
		whole(scalesFile, scales, nil)
	}
	if t.shard == nil {
		whole(optimizerFile, t.optimizerState(), nil)
	} else {
		spread(optimizerFile, t.shard, (*model.Model).Places, t.optimizer.State(), nil)
	}
	return files, release, err
}

// averages returns the averages of the weights under the names in a checkpoint, or those of the
// pieces of weights that this rank updates; nil without.
func (t *trainer) averages() []model.Named {
	switch {
	case t.average == nil:
		return nil
	case t.shard != nil:
		return t.shard.State(t.average.State())
	}
	return t.model.SplitTrained(t.average.Means())
}

// averaged replaces the weights by their averages until restore is called.
func (t *trainer) averaged() (restore func() error, err error) {
	if t.average == nil || t.state.Step == 0 {
		return func() error { return nil }, nil
	}
	swap := func() error {
		if err := t.gathered(); err != nil { // what is being sent must not change
			return err
		}
		if err := t.average.Swap(); err != nil {
			return err
		}
		t.model.WeightsChanged()
		if err := t.publish(); err != nil {
			return err
		}
		return t.gathered()
	}
	return swap, swap()
}

// optimizerState returns what the optimizer keeps of the weights, under the names in a checkpoint,
// or of the pieces of weights that this rank updates.
func (t *trainer) optimizerState() []model.Named {
	if t.shard != nil {
		return t.shard.State(t.optimizer.State())
	}
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
