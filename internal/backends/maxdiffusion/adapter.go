package maxdiffusion

import (
	"errors"
	"slices"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/backends/python"
	"github.com/primus-fl/primus/runtime/backend"
)

// Framework is the name that experiments use for this backend.
const Framework = "maxdiffusion"

// Factory returns the factory of the backend.
func Factory() backend.Factory {
	return backend.Factory{
		Framework: Framework, Description: "runs MaxDiffusion", Launches: true,
		New: func() backend.Adapter { return adapter{common} },
	}
}

type adapter struct{ python.Adapter }

var common = python.NewAdapter(framework, backend.TrainerClass{Stage: "pretrain", Name: "MaxDiffusionPretrainTrainer"})

// Args are the parameters that this program looks at.
type Args struct {
	Entrypoint      *string                   `param:"maxdiffusion_entrypoint"`
	ModelName       *string                   `param:"model_name"`
	PretrainedModel *string                   `param:"pretrained_model_name_or_path"`
	Steps           int                       `param:"max_train_steps"`
	OverrideModel   map[string]document.Value `param:"override_model"`
}

// EnvPath is the variable for the source tree of MaxDiffusion, after BACKEND_PATH.
const EnvPath = "MAXDIFFUSION_PATH"

// imagePath is where images of MaxDiffusion have its source tree.
const imagePath = "/workspace/maxdiffusion"

// SetupPath returns no paths when there is no source tree, because MaxDiffusion may be installed.
func (adapter) SetupPath(given string, tc *backend.TrainContext) (backend.Paths, error) {
	const dir, src = "maxdiffusion", "src"
	named := given != "" || tc.Environ.Get(backend.EnvBackendPath, "") != ""
	if path := tc.Environ.Get(EnvPath, ""); !named && path != "" {
		return backend.TreeAt(Framework, dir, path, EnvPath, src)
	}
	found, err := backend.FindTree(tc, dir, given, src)
	if err == nil || named {
		return found, err
	}
	if found, err = backend.TreeAt(Framework, dir, imagePath, "the usual place in images", src); err == nil {
		return found, nil
	}
	return backend.Paths{}, nil
}

func (adapter) ConvertConfig(tc *backend.TrainContext) (*backend.Args, []document.Warning, error) {
	args := backend.NewArgs(tc.Module.Params, runtimeKeys...)
	var typed Args
	if _, err := document.Decode(args.Map(), &typed); err != nil {
		return nil, nil, err
	}
	_, err := family(tc.Module.Params)
	return args, nil, errors.Join(python.CheckOverrides(typed.OverrideModel, "MaxDiffusion"), err)
}

// DetectVersion reads the assignment of __version__, or the metadata of the installed distribution.
func (adapter) DetectVersion(tc *backend.TrainContext) (string, error) {
	if version, err := python.OfPackage(tc.Paths.PythonPath, "maxdiffusion/__init__.py"); err == nil {
		return version, nil
	}
	return python.OfInstalled(slices.Concat(tc.Paths.PythonPath, python.SitePackages(tc.Environ.Lookup)), "maxdiffusion")
}

// EnvDefaults returns what processes on several nodes need; the other variables are for the env
// block of an experiment to set.
func (adapter) EnvDefaults(env *backend.Environ) []backend.EnvDefault {
	return python.Coordinator(env)
}

var _ backend.EnvDefaulter = adapter{}
