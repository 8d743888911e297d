package config_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/runtime/config"
)

// azure is the preset of experiments that name none: the variables of the environment that a
// scheduler sets.
const azure = `name: azure
num_nodes_env_key: NNODES
node_rank_env_key: NODE_RANK
master_addr_env_key: MASTER_ADDR
master_port_env_key: MASTER_PORT
gpus_per_node_env_key: GPUS_PER_NODE
workspace: ./output
`

// An experiment is loaded with the overrides of a command line, which come on top of its file.
func Example() {
	dir, err := os.MkdirTemp("", "config-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "exp.yaml")
	text := "work_group: lab\nuser_name: me\nexp_name: small\nworkspace: ./output\nmodules:\n  pre_trainer:\n    framework: native\n    train_iters: 100\n    lr: 1.0e-3\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	presets := config.Root{Name: "presets", FS: fstest.MapFS{"platforms/platform_azure.yaml": {Data: []byte(azure)}}}
	experiment, err := config.LoadExperiment(context.Background(), file, config.Options{Formats: formats.All(), Presets: []config.Root{presets}, Overrides: []string{"lr=5e-4"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	module := experiment.Modules[0]
	fmt.Println(experiment.ExpName, module.Name, module.Framework)
	for name, value := range module.Params.All() {
		fmt.Println(name, value, filepath.Base(value.Origin().String()))
	}
	// Output:
	// small pre_trainer native
	// train_iters 100 exp.yaml:8:18
	// lr 0.0005 override 1 "lr=5e-4"
}
