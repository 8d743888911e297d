package megatronbridge

import (
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/backends/python"
	"github.com/primus-fl/primus/runtime/backend"
)

// Framework is the name that experiments use for this backend.
const Framework = "megatron_bridge"

// Factory returns the factory of the backend.
func Factory() backend.Factory {
	return backend.Factory{
		Framework: Framework, Description: "runs Megatron-Bridge", Launches: true,
		New: func() backend.Adapter { return adapter{common} },
	}
}

type adapter struct{ python.Adapter }

var common = python.NewAdapter(framework,
	backend.TrainerClass{Stage: "pretrain", Name: "MegatronBridgePretrainTrainer"},
	backend.TrainerClass{Stage: "sft", Name: "MegatronBridgeSFTTrainer"},
)

// Args are the parameters that this program looks at.
type Args struct {
	Recipe string `param:"recipe,required"`
	Flavor string `param:"flavor,required"`
}

func (adapter) SetupPath(given string, tc *backend.TrainContext) (backend.Paths, error) {
	return backend.FindTree(tc, "Megatron-Bridge", given, "src", "3rdparty/Megatron-LM")
}

func (adapter) ConvertConfig(tc *backend.TrainContext) (*backend.Args, []document.Warning, error) {
	args := backend.NewArgs(tc.Module.Params)
	if err := normalise(args); err != nil {
		return nil, nil, err
	}
	_, err := document.Decode(args.Map(), &Args{})
	return args, nil, err
}

// EarlyVersion reads megatron/bridge/package_info.py.
func (adapter) EarlyVersion(tc *backend.TrainContext) (string, error) {
	return python.OfPackage(tc.Paths.PythonPath, "megatron/bridge/package_info.py")
}

func (a adapter) DetectVersion(tc *backend.TrainContext) (string, error) { return a.EarlyVersion(tc) }

var _ backend.EarlyVersioner = adapter{}
