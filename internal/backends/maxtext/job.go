package maxtext

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/backends/python"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/secret"
	"github.com/primus-fl/primus/runtime/backend"
)

// framework says how MaxText is started and how its log is read.
var framework = python.Framework{Name: Framework, Job: job, Step: python.CompletedStep, Steps: steps, TokensPerStep: tokensPerStep}

// layouts lists the places of the trainer of MaxText, the newest first: a file of the source tree
// and the name of its module.
var layouts = []struct{ file, module string }{
	{"src/maxtext/trainers/pre_train/train.py", "maxtext.trainers.pre_train.train"},
	{"maxtext/trainers/pre_train/train.py", "maxtext.trainers.pre_train.train"},
	{"src/MaxText/train.py", "MaxText.train"},
	{"MaxText/train.py", "MaxText.train"},
}

// module returns the module of the trainer.
func module(tc *backend.TrainContext) (string, error) {
	if tc.Paths.Dir == "" {
		return layouts[0].module, nil
	}
	var tried []string
	for _, l := range layouts {
		if python.Exists(filepath.Join(tc.Paths.Dir, filepath.FromSlash(l.file))) {
			return l.module, nil
		}
		tried = append(tried, l.file)
	}
	return "", fmt.Errorf("framework %s: the source tree %s has no trainer: want one of %s", Framework, tc.Paths.Dir, strings.Join(tried, ", "))
}

// configFile is the name of the YAML file that MaxText reads.
const configFile = "primus_maxtext.yml"

// job says how MaxText is started: with its parameters in a YAML file and override_model on the
// command line.
func job(tc *backend.TrainContext, dir string) (launch.Job, error) {
	name, err := module(tc)
	if err != nil {
		return launch.Job{}, err
	}
	values := map[string]document.Value{}
	var secrets []launch.Variable
	for key, v := range tc.Args.Map().All() {
		switch {
		case slices.Contains(runtimeKeys, key) || slices.Contains(ownKeys, key) || backend.IsRuntimeParam(key):
		case isSecret(key, v):
			// MaxText takes any parameter from the variable M_ and its name in capitals.
			secrets = append(secrets, launch.Variable{Name: "M_" + strings.ToUpper(key), Value: v.Text(), Source: "parameter " + key})
		default:
			values[key] = v
		}
	}
	text, err := python.YAML(values)
	if err != nil {
		return launch.Job{}, err
	}
	file := filepath.Join(dir, configFile)
	program := []string{"-m", name, file}
	if overrides, ok := tc.Args.Lookup("override_model"); ok {
		m, _ := overrides.Map()
		for key, v := range m.All() {
			text, err := python.Inline(v)
			if err != nil {
				return launch.Job{}, fmt.Errorf("override_model.%s: %w", key, err)
			}
			program = append(program, key+"="+text)
		}
	}
	return launch.Job{Program: program, Env: secrets, Files: []launch.File{{Path: file, Content: text, Temporary: true}}}, nil
}

// ownKeys are parameters that this program reads, in addition to those of the runtime.
var ownKeys = []string{"override_model", "stage", "trainer_class", backend.DispatchBlock}

// isSecret reports whether a parameter holds a secret. A pair of quotes is how an unset variable
// arrives, and says nothing.
func isSecret(key string, v document.Value) bool {
	text, ok := v.Str()
	return ok && secret.Value(key, text)
}

// steps returns the number of steps of a run.
func steps(tc *backend.TrainContext) int { return python.Integer(tc, "steps") }

// tokensPerStep is unknown before the log says it: MaxText counts devices, not processes.
func tokensPerStep(*backend.TrainContext, int) int { return 0 }
