package backend_test

import (
	"context"
	"fmt"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/runtime/backend"
)

// steps trains nothing: it counts.
type steps struct{ tc *backend.TrainContext }

func (s steps) Setup(context.Context) error { return nil }

func (s steps) Init(context.Context) error { return nil }

func (s steps) Train(context.Context) error {
	n, _ := s.tc.Args.Lookup("train_iters")
	fmt.Println("steps:", n)
	return nil
}

func (s steps) Cleanup(cause error) error { return cause }

// adapter connects it to the runtime.
type adapter struct{}

func (adapter) SetupPath(string, *backend.TrainContext) (backend.Paths, error) {
	return backend.Paths{}, nil
}

func (adapter) Prepare(context.Context, *backend.TrainContext) error { return nil }

func (adapter) ConvertConfig(tc *backend.TrainContext) (*backend.Args, []document.Warning, error) {
	return backend.NewArgs(tc.Module.Params), nil, nil
}

func (adapter) DetectVersion(*backend.TrainContext) (string, error) { return "1.0", nil }

func (adapter) Stages() []string { return []string{"pretrain"} }

func (adapter) LoadTrainer(stage, _ string) (backend.TrainerClass, error) {
	return backend.TrainerClass{Stage: stage, Name: "Steps", New: func(tc *backend.TrainContext) (backend.Trainer, error) {
		return steps{tc}, nil
	}}, nil
}

// A backend is found by the name that experiments use. The runtime calls its adapter, and then the
// trainer that the adapter makes.
func Example() {
	registry, err := backend.NewRegistry(backend.Factory{Framework: "steps", New: func() backend.Adapter { return adapter{} }})
	if err != nil {
		fmt.Println(err)
		return
	}
	factory, err := registry.Get("steps")
	if err != nil {
		fmt.Println(err)
		return
	}
	class, err := factory.New().LoadTrainer("pretrain", "")
	fmt.Println(registry.Names(), class.Name, err)
	// Output: [steps] Steps <nil>
}
