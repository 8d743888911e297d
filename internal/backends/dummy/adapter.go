package dummy

import (
	"context"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/runtime/backend"
)

// Framework is the name that experiments use for this backend.
const Framework = "dummy"

// Factory returns the factory of the dummy backend.
func Factory() backend.Factory {
	return backend.Factory{
		Framework: Framework, Description: "goes through the lifecycle and trains nothing",
		New: func() backend.Adapter { return Adapter{} },
	}
}

// Adapter connects the dummy backend to the runtime.
type Adapter struct{}

var trainers = backend.Trainers{{Stage: "pretrain", Name: "DummyPretrainTrainer", New: newPretrainTrainer}}

// SetupPath finds nothing, since the backend is compiled in.
func (Adapter) SetupPath(_ string, tc *backend.TrainContext) (backend.Paths, error) {
	tc.Log.Info("[Primus:DummyAdapter] setup_backend_path: no-op for in-tree dummy backend")
	return backend.Paths{}, nil
}

// Prepare only logs that there is nothing to prepare.
func (Adapter) Prepare(_ context.Context, tc *backend.TrainContext) error {
	tc.Log.Info("[Primus:DummyAdapter] Backend prepared")
	return nil
}

// ConvertConfig returns the parameters of the module as they are.
func (Adapter) ConvertConfig(tc *backend.TrainContext) (*backend.Args, []document.Warning, error) {
	args := backend.NewArgs(tc.Module.Params)
	tc.Log.Info("[Primus:DummyAdapter] Converted Primus params -> dummy backend_args")
	return args, nil, nil
}

// DetectVersion returns the version of the backend.
func (Adapter) DetectVersion(*backend.TrainContext) (string, error) { return "dummy-0.0.1", nil }

// LoadTrainer returns the trainer class of the stage pretrain.
func (Adapter) LoadTrainer(stage, class string) (backend.TrainerClass, error) {
	return trainers.Load(Framework, stage, class)
}

// Stages returns pretrain.
func (Adapter) Stages() []string { return trainers.Stages() }

var _ backend.Adapter = Adapter{}
