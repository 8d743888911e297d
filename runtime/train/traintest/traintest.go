// Package traintest tests training backends. It plans or runs a module of a backend in a temporary
// directory with an environment of its own.
//
// A Lab describes the module. Plan and Run are those of package train.
package traintest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/configs"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/config"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/primus-fl/primus/runtime/train"
)

// Lab is a module of a backend and the directory and environment in which it runs.
type Lab struct {
	Factory     backend.Factory
	Patches     []patch.Patch
	Params      string            // YAML, one parameter per line
	File        string            // an experiment in place of Params
	Presets     []config.Root     // before the embedded ones
	Env         map[string]string // the whole environment
	BackendPath string
	Arch        backend.Arch
	Launch      launch.Options
	Observer    backend.Observer // nil for none
	Manager     *opmanager.Manager
	Lenient     bool // a patch that fails does not end the run

	// Log is what was logged, every level.
	Log strings.Builder
	// Dir is the directory of the experiment, made by the first Plan or Run.
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
	if l.Dir == "" {
		l.Dir = t.TempDir()
	}
	if l.Env == nil {
		l.Env = map[string]string{}
	}
	environ := backend.MapEnviron(l.Env)
	file := l.File
	if file == "" {
		file = l.writeExperiment(t)
	}
	e, err := config.LoadExperiment(t.Context(), file, config.Options{
		Formats: formats.All(), Presets: append(slices.Clone(l.Presets), config.Root{Name: "embedded presets", FS: configs.FS()}), Env: environ.Lookup,
	})
	if err != nil {
		t.Fatal(err)
	}
	module, stage := "pre_trainer", "pretrain"
	if _, err := e.Module(module); err != nil {
		module, stage = "post_trainer", "posttrain"
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
		Experiment: e, ModuleName: module, Stage: stage, Backends: backends, Patches: patches, StrictPatches: !l.Lenient,
		Environ: environ, DataPath: filepath.Join(l.Dir, "data"), BackendPath: l.BackendPath,
		DetectArch: func() backend.Arch { return l.Arch }, Observer: l.observer(), Launch: l.Launch, Manager: l.Manager, Grace: time.Minute, LogFile: &backend.LogFile{},
		Log: slog.New(slog.NewTextHandler(&l.Log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

// writeExperiment writes an experiment with the parameters and returns its file.
func (l *Lab) writeExperiment(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "work_group: g\nuser_name: u\nexp_name: e\nworkspace: %q\nmodules:\n  pre_trainer:\n    framework: %s\n", l.Dir, l.Factory.Framework)
	for line := range strings.Lines(l.Params) {
		b.WriteString("    " + strings.TrimLeft(line, "\t"))
	}
	file := filepath.Join(l.Dir, "exp.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func (l *Lab) observer() backend.Observer {
	if l.Observer == nil {
		return backend.Observers{}
	}
	return l.Observer
}

// RunIn runs the module until ctx ends.
func (l *Lab) RunIn(ctx context.Context, t *testing.T) error {
	t.Helper()
	return train.Run(ctx, l.settings(t))
}

// Recorded returns the recorded behaviour of the ancestor that a file has, or skips the test.
func Recorded[T any](t *testing.T, name string) T {
	t.Helper()
	shared := os.Getenv("PRIMUS_SHARED")
	if shared == "" {
		dir, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for !isFile(filepath.Join(dir, "go.mod")) && dir != filepath.Dir(dir) {
			dir = filepath.Dir(dir)
		}
		shared = filepath.Join(dir, "..", "shared")
	}
	text, err := os.ReadFile(filepath.Join(shared, "fixtures", "backends", name))
	if err != nil {
		t.Skipf("recorded fixtures are not here (set PRIMUS_SHARED): %v", err)
	}
	var into T
	if err := json.Unmarshal(text, &into); err != nil {
		t.Fatal(err)
	}
	return into
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// exponent matches a number of JSON without the point that makes YAML 1.1 read it as one.
var exponent = regexp.MustCompile(`(^-?\d+|[:\[,]-?\d+)[eE]([-+]?\d+)`)

// Lines returns recorded parameters in the form of Lab.Params.
func Lines(params map[string]json.RawMessage) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(params)) {
		var compact bytes.Buffer
		if err := json.Compact(&compact, params[key]); err != nil {
			panic("BUG: " + err.Error()) // it was read as JSON
		}
		fmt.Fprintf(&b, "%q: %s\n", key, exponent.ReplaceAllString(compact.String(), "$1.0e$2"))
	}
	return b.String()
}

// Argument returns the printed value of an argument of a plan and who wrote it, "" if there is no
// such argument.
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
