package maxtext

import (
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/backends/python"
	"github.com/primus-fl/primus/runtime/backend"
)

// Framework is the name that experiments use for this backend.
const Framework = "maxtext"

// Factory returns the factory of the backend.
func Factory() backend.Factory {
	return backend.Factory{
		Framework: Framework, Description: "runs MaxText", Launches: true,
		New: func() backend.Adapter { return adapter{common} },
	}
}

type adapter struct{ python.Adapter }

var common = python.NewAdapter(framework, backend.TrainerClass{Stage: "pretrain", Name: "MaxTextPretrainTrainer"})

// Args are the parameters that this program looks at.
type Args struct {
	BaseConfig    string                    `param:"base_config"`
	Steps         int                       `param:"steps"`
	OverrideModel map[string]document.Value `param:"override_model"`
}

// runtimeKeys are parameters of the runtime, which MaxText refuses.
var runtimeKeys = []string{"file_sink_level", "stderr_sink_level", "sink_level", "trainable", "model"}

func (adapter) SetupPath(given string, tc *backend.TrainContext) (backend.Paths, error) {
	return backend.FindTree(tc, "maxtext", given, "src")
}

func (adapter) ConvertConfig(tc *backend.TrainContext) (*backend.Args, []document.Warning, error) {
	args := backend.NewArgs(tc.Module.Params, runtimeKeys...)
	var typed Args
	if _, err := document.Decode(args.Map(), &typed); err != nil {
		return nil, nil, err
	}
	return args, nil, python.CheckOverrides(typed.OverrideModel, "MaxText")
}

// DetectVersion reads the assignment of __version__.
func (adapter) DetectVersion(tc *backend.TrainContext) (string, error) {
	return python.OfPackage(tc.Paths.PythonPath, "maxtext/__init__.py", "MaxText/__init__.py")
}

var _ backend.EnvDefaulter = adapter{}
