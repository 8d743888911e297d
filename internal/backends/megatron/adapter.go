package megatron

import (
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/backends/python"
	"github.com/primus-fl/primus/runtime/backend"
)

// Framework is the name that experiments use for this backend.
const Framework = "megatron"

// Factory returns the factory of the backend.
func Factory() backend.Factory {
	return backend.Factory{
		Framework: Framework, Description: "runs Megatron-LM", Launches: true,
		New: func() backend.Adapter { return adapter{common} },
	}
}

type adapter struct{ python.Adapter }

var common = python.NewAdapter(framework,
	backend.TrainerClass{Stage: "pretrain", Name: "MegatronPretrainTrainer"},
	backend.TrainerClass{Stage: "pretrain", Name: "FluxPretrainTrainer"},
	backend.TrainerClass{Stage: "sft", Name: "MegatronSFTTrainer"},
	backend.TrainerClass{Stage: "mlperf_pretrain", Name: "MegatronMLPerfPretrainTrainer"},
)

// Args are the parameters that this program looks at; Megatron has several hundred more. Switches
// have no type here, because experiments write 1 for true.
type Args struct {
	TensorParallel   int     `param:"tensor_model_parallel_size"`
	PipelineParallel int     `param:"pipeline_model_parallel_size"`
	MicroBatchSize   int     `param:"micro_batch_size"`
	GlobalBatchSize  int     `param:"global_batch_size"`
	Save             *string `param:"save"`
}

func (adapter) SetupPath(given string, tc *backend.TrainContext) (backend.Paths, error) {
	return backend.FindTree(tc, "Megatron-LM", given)
}

func (adapter) ConvertConfig(tc *backend.TrainContext) (*backend.Args, []document.Warning, error) {
	args := backend.NewArgs(tc.Module.Params)
	_, err := document.Decode(args.Map(), &Args{})
	return args, nil, err
}

// EarlyVersion reads megatron/core/package_info.py.
func (adapter) EarlyVersion(tc *backend.TrainContext) (string, error) {
	return python.OfPackage(tc.Paths.PythonPath, "megatron/core/package_info.py")
}

func (a adapter) DetectVersion(tc *backend.TrainContext) (string, error) { return a.EarlyVersion(tc) }

var _ backend.EarlyVersioner = adapter{}
