package experiments

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus"
	"github.com/primus-fl/primus/cmd/primus/command/internal/cli"
	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/suggest"
	"github.com/primus-fl/primus/runtime/backends/native"
	"github.com/primus-fl/primus/runtime/config"
)

// StandardInput is the name by which an experiment is read from standard input.
const StandardInput = "-"

// Example is an experiment that comes with the program.
type Example struct {
	Name string `json:"name"` // for --config
	File string `json:"file"` // below the source tree
	Text string `json:"text"` // its first comment
}

// Examples returns the experiments that come with the program, sorted by name.
func Examples() []Example {
	var all []Example
	for _, pattern := range []string{"examples/native/configs/*.yaml", "examples/dummy/configs/*.yaml"} {
		files, err := fs.Glob(primus.Files(), pattern)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		for _, file := range files {
			text, err := fs.ReadFile(primus.Files(), file)
			if err != nil {
				panic("BUG: " + err.Error())
			}
			all = append(all, Example{Name: strings.TrimSuffix(path.Base(file), ".yaml"), File: file, Text: firstComment(string(text))})
		}
	}
	slices.SortFunc(all, func(a, b Example) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// exampleFor returns the example that the value of --config names: one without an extension that is
// no file.
func exampleFor(name string) (Example, bool) {
	if _, err := os.Stat(name); err == nil {
		return Example{}, false
	}
	all := Examples()
	i := slices.IndexFunc(all, func(e Example) bool { return e.Name == name })
	if i < 0 {
		return Example{}, false
	}
	return all[i], true
}

// Read loads an experiment: a file, an example by its name, or standard input. adapt changes how it
// is loaded; it may be nil.
func (o *PresetOptions) Read(ctx context.Context, name string, adapt func(*config.Options)) (*config.Experiment, error) {
	settings, err := o.settingsFor(name)
	if err != nil {
		return nil, err
	}
	settings.Places = map[string]config.Place{native.Framework: {WorkGroup: "local", UserName: "local", Workspace: "./output"}}
	if adapt != nil {
		adapt(&settings)
	}
	file := name
	if name == StandardInput {
		if o.input == nil {
			if o.input, err = readInput(o.Program); err != nil {
				return nil, err
			}
		}
		file, settings.Text = "stdin.yaml", o.input
	} else if example, ok := exampleFor(name); ok {
		file = path.Base(example.File)
		if settings.Text, err = fs.ReadFile(primus.Files(), example.File); err != nil {
			return nil, err
		}
	}
	e, err := config.LoadExperiment(ctx, file, settings)
	if errors.Is(err, fs.ErrNotExist) && name != StandardInput {
		err = fmt.Errorf("%w%s", err, absentHint(name))
	}
	if irregular, ok := errors.AsType[*durable.IrregularError](err); ok && irregular.Mode&fs.ModeNamedPipe != 0 {
		err = fmt.Errorf("%w; --config - reads what a pipe brings to the standard input", err)
	}
	return e, err
}

// absentHint says which experiments there are instead of one that is not there; it is "" if that is
// there and a file that it names is not.
func absentHint(name string) string {
	if _, err := os.Stat(name); err == nil {
		return ""
	}
	base := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	if example, ok := exampleFor(base); ok {
		return fmt.Sprintf("; this experiment comes with the program: --config %s", example.Name)
	}
	if filepath.Ext(name) != "" || strings.ContainsAny(name, `/\`) {
		return "; primus init writes an experiment, and primus examples list shows those that come with the program"
	}
	var names []string
	for _, example := range Examples() {
		names = append(names, example.Name)
	}
	return fmt.Sprintf("%s\nexamples: %s", suggest.Hint(name, names), strings.Join(names, ", "))
}

func readInput(prog cli.Program) ([]byte, error) {
	in := prog.In
	if in == nil {
		in = os.Stdin
	}
	text, err := io.ReadAll(io.LimitReader(in, document.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read the experiment from standard input: %w", err)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, cli.UsageError{Err: errors.New("--config -: standard input is empty, want an experiment in YAML or JSON")}
	}
	return text, nil
}
