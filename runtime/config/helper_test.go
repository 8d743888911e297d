package config_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/runtime/config"
)

const experimentHead = "work_group: wg\nuser_name: u\nexp_name: e\nworkspace: ./o\nplatform: {config: local.yaml}\n"

const trainer = "modules:\n  pre_trainer:\n    framework: fw\n    config: t.yaml\n    model: m.yaml\n"

const platform = "name: local\nnum_nodes_env_key: null\nnode_rank_env_key: null\nmaster_addr_env_key: null\n" +
	"master_port_env_key: null\ngpus_per_node_env_key: null\nmaster_sink_level: INFO\nworkspace: ./output\n"

// files maps paths below a directory, or below a preset root, to content.
type files map[string]string

// write puts files into a new directory.
func write(t *testing.T, tree files) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range tree {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

// memoryRoot is a preset root without a directory, with a platform and whatever else is given.
func memoryRoot(tree files) config.Root {
	memory := fstest.MapFS{"platforms/local.yaml": {Data: []byte(platform)}}
	for name, text := range tree {
		memory[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return config.Root{Name: "embedded", FS: memory}
}

func environment(variables map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	}
}

// load writes exp.yaml and loads it with one preset root.
func load(t *testing.T, experiment string, presets files, options config.Options) (*config.Experiment, error) {
	t.Helper()
	dir := write(t, files{"exp.yaml": experiment})
	options.Presets = append(options.Presets, memoryRoot(presets))
	options.Formats = formats.All()
	if options.Env == nil {
		options.Env = environment(nil)
	}
	return config.LoadExperiment(t.Context(), filepath.Join(dir, "exp.yaml"), options)
}

// noticed renders all warnings and collisions.
func noticed(exp *config.Experiment) []string {
	var lines []string
	for _, warning := range exp.Report.Warnings {
		lines = append(lines, warning.String())
	}
	for _, collision := range exp.Report.Collisions {
		lines = append(lines, collision.String())
	}
	return lines
}
