package maxdiffusion

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/backends/python"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/secret"
	"github.com/primus-fl/primus/internal/suggest"
	"github.com/primus-fl/primus/runtime/backend"
)

// framework says how MaxDiffusion is started and how its log is read.
var framework = python.Framework{
	Name: Framework, Job: job, Step: python.CompletedStep, Steps: steps,
	TokensPerStep: func(*backend.TrainContext, int) int { return 0 }, // images and videos have no tokens
}

// runtimeKeys are parameters of the runtime, which MaxDiffusion does not know.
var runtimeKeys = []string{
	"file_sink_level", "stderr_sink_level", "sink_level", "trainable", "stage", "model", "maxdiffusion_entrypoint",
}

// ownKeys are parameters that this program reads, besides those of the runtime.
var ownKeys = []string{"override_model", "trainer_class", backend.DispatchBlock}

// programs are the modules that train, for each family of models.
var programs = map[string]string{"wan": "maxdiffusion.train_wan", "flux": "maxdiffusion.train_flux"}

// family returns the family of the model: as it is given, or as the names of the model say.
func family(params *document.Map) (string, error) {
	families := []string{"flux", "wan"}
	const key = "maxdiffusion_entrypoint"
	if v, ok := params.Lookup(key); ok && !v.IsNull() && v.Text() != "" {
		name := strings.ToLower(strings.TrimSpace(v.Text()))
		if !slices.Contains(families, name) {
			return "", &document.Error{
				Origin: v.Origin(), Path: key, Problem: fmt.Sprintf("given %q, want flux or wan", v.Text()), Hint: suggest.Hint(name, families),
			}
		}
		return name, nil
	}
	var names []string
	for _, key := range []string{"model_name", "pretrained_model_name_or_path"} {
		v, _ := params.Lookup(key)
		text, _ := v.Str()
		names = append(names, strings.ToLower(text))
	}
	all := strings.Join(names, " ")
	switch {
	case strings.Contains(all, "wan"):
		return "wan", nil
	case strings.Contains(all, "flux"):
		return "flux", nil
	}
	return "", fmt.Errorf("framework %s: neither model_name nor pretrained_model_name_or_path says the family of the model: set %s to flux or wan", Framework, key)
}

// configFile is the name of the YAML file that MaxDiffusion reads.
const configFile = "primus_maxdiffusion.yml"

// job says how MaxDiffusion is started: with its parameters in a YAML file and override_model on
// the command line.
func job(tc *backend.TrainContext, dir string) (launch.Job, error) {
	name, err := family(tc.Module.Params)
	if err != nil {
		return launch.Job{}, err
	}
	values := map[string]document.Value{}
	var notes []string
	for key, v := range tc.Args.Map().All() {
		text, isText := v.Str()
		switch {
		case slices.Contains(runtimeKeys, key) || slices.Contains(ownKeys, key) || backend.IsRuntimeParam(key):
		case isText && secret.Value(key, text):
			notes = append(notes, "parameter "+key+" is left out: it is a secret, and MaxDiffusion would read it from a file; give it as a variable such as HF_TOKEN")
		default:
			values[key] = v
		}
	}
	text, err := python.YAML(values)
	if err != nil {
		return launch.Job{}, err
	}
	file := filepath.Join(dir, configFile)
	program := []string{"-m", programs[name], file}
	if overrides, ok := tc.Args.Lookup("override_model"); ok {
		m, _ := overrides.Map()
		for key, v := range m.All() {
			program = append(program, key+"="+python.Str(v))
		}
	}
	return launch.Job{Program: program, Notes: notes, Files: []launch.File{{Path: file, Content: text, Temporary: true}}}, nil
}

// steps returns the number of steps of a run.
func steps(tc *backend.TrainContext) int { return python.Integer(tc, "max_train_steps") }
