// Package traintest tests training backends. It plans or runs a module of a backend in a temporary
// directory with an environment of its own.
//
// A Lab describes the module. Plan and Run are those of package train.
package traintest

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/configs"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/primus-fl/primus/runtime/train"
)

// Lab is a module of a backend and the directory and environment in which it runs.
type Lab struct {
	Factory     backend.Factory
	Patches     []patch.Patch
	Params      string            // YAML, one parameter per line
	Env         map[string]string // the whole environment
	BackendPath string
	Arch        backend.Arch

	// Log is what was logged, every level.
	Log strings.Builder
	// Dir is the directory of the experiment.
	Dir string
}

// Plan plans the module.
func (l *Lab) Plan(t *testing.T) (*train.Plan, error) {
	t.Helper()
	return train.NewPlan(t.Context(), l.settings(t))
}

// Run runs the module.
func (l *Lab) Run(t *testing.T) error {
	t.Helper()
	return train.Run(t.Context(), l.settings(t))
}

func (l *Lab) settings(t *testing.T) train.Settings {
	t.Helper()
	l.Dir = t.TempDir()
	if l.Env == nil {
		l.Env = map[string]string{}
	}
	environ := backend.MapEnviron(l.Env)
	var b strings.Builder
	fmt.Fprintf(&b, "work_group: g\nuser_name: u\nexp_name: e\nworkspace: %q\nmodules:\n  pre_trainer:\n    framework: %s\n", l.Dir, l.Factory.Framework)
	for line := range strings.Lines(l.Params) {
		b.WriteString("    " + strings.TrimLeft(line, "\t"))
	}
	file := filepath.Join(l.Dir, "exp.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	e, err := config.LoadExperiment(file, config.Options{
		Formats: formats.All(),
		Presets: []config.Root{{Name: "embedded presets", FS: configs.FS()}}, Env: environ.Lookup,
	})
	if err != nil {
		t.Fatal(err)
	}
	backends, err := backend.NewRegistry(l.Factory)
	if err != nil {
		t.Fatal(err)
	}
	patches, err := patch.Sorted(l.Patches)
	if err != nil {
		t.Fatal(err)
	}
	if err := patches.Check(backends.Names()); err != nil {
		t.Fatal(err)
	}
	return train.Settings{
		Experiment: e, ModuleName: "pre_trainer", Stage: "pretrain", Backends: backends, Patches: patches, StrictPatches: true,
		Environ: environ, DataPath: filepath.Join(l.Dir, "data"), BackendPath: l.BackendPath,
		DetectArch: func() backend.Arch { return l.Arch }, Observer: backend.Observers{}, LogFile: &backend.LogFile{},
		Log: slog.New(slog.NewTextHandler(&l.Log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

// Argument returns the value of an argument of a plan as it is shown, and who wrote it; empty when
// there is none.
func Argument(p *train.Plan, path string) (value, source string) {
	for _, l := range p.Leaves() {
		if l.Path == path {
			return l.Value, l.Source
		}
	}
	return "", ""
}

// Tree makes a source tree of some files below a new directory and returns it.
func Tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
