package torchtitan

import (
	"slices"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/backends/python"
	"github.com/primus-fl/primus/runtime/backend"
)

// Framework is the name that experiments use for this backend.
const Framework = "torchtitan"

// Factory returns the factory of the backend.
func Factory() backend.Factory {
	return backend.Factory{
		Framework: Framework, Description: "runs TorchTitan", Launches: true,
		New: func() backend.Adapter { return adapter{common} },
	}
}

type adapter struct{ python.Adapter }

var common = python.NewAdapter(framework, backend.TrainerClass{Stage: "pretrain", Name: "TorchTitanPretrainTrainer"})

// Args are the sections that this program looks at, and in them the keys.
type Args struct {
	Training struct {
		Steps          int `param:"steps"`
		LocalBatchSize int `param:"local_batch_size"`
		SeqLen         int `param:"seq_len"`
	} `param:"training"`
	Parallelism struct {
		TensorParallel   int `param:"tensor_parallel_degree"`
		PipelineParallel int `param:"pipeline_parallel_degree"`
	} `param:"parallelism"`
}

func (adapter) SetupPath(given string, tc *backend.TrainContext) (backend.Paths, error) {
	return backend.FindTree(tc, "torchtitan", given)
}

func (adapter) ConvertConfig(tc *backend.TrainContext) (*backend.Args, []document.Warning, error) {
	var others []string
	for key, v := range tc.Module.Params.All() {
		if v.Kind() != document.KindMap || key == backend.DispatchBlock {
			others = append(others, key)
		}
	}
	args := backend.NewArgs(tc.Module.Params, others...)
	_, err := document.Decode(args.Map(), &Args{})
	return args, nil, err
}

// DetectVersion reads the metadata of the installed distribution; a bare source tree has none.
func (adapter) DetectVersion(tc *backend.TrainContext) (string, error) {
	dirs := slices.Concat(tc.Paths.PythonPath, python.SitePackages(tc.Environ.Lookup))
	return python.OfInstalled(dirs, "torchtitan")
}
