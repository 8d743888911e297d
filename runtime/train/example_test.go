package train_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/train"
)

// The plan of an experiment says what Run would do with it, and why it would fail.
func Example() {
	file := "../../examples/native/configs/llama_2M-pretrain.yaml"
	presets, err := config.DirRoot("../../internal/configs")
	if err != nil {
		fmt.Println(err)
		return
	}
	environ := backend.MapEnviron(nil)
	experiment, err := config.LoadExperiment(context.Background(), file, config.Options{Formats: formats.All(), Presets: []config.Root{presets}, Env: environ.Lookup})
	if err != nil {
		fmt.Println(err)
		return
	}
	backends, err := backend.NewRegistry(native.Factory())
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := train.NewPlan(context.Background(), train.Settings{Experiment: experiment, ModuleName: "pre_trainer", Stage: "pretrain", Backends: backends, Environ: environ, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(plan.Framework, plan.Trainer, plan.Problems)
	// Output: native NativePretrainTrainer []
}
