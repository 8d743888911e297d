package torchtitan

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/document/formats"
	"github.com/primus-fl/primus/internal/backends/python"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/pyreader"
	"github.com/primus-fl/primus/runtime/backend"
)

// framework says how TorchTitan is started and how its log is read.
var framework = python.Framework{Name: Framework, Job: job, Step: readStep, Steps: steps, TokensPerStep: tokensPerStep}

const (
	configFile = "torchtitan.toml"

	// turbo is the section, and the beginning of the names of model converters, that AMD's package
	// adds to TorchTitan.
	turbo = "primus_turbo"

	// customModule is the key that makes TorchTitan extend its job configuration.
	customModule = "custom_config_module"
)

// job says how TorchTitan is started: with a TOML file of the job configuration, a process for each
// device.
func job(tc *backend.TrainContext, dir string) (launch.Job, error) {
	config := tc.Args.Map()
	var known map[string]pyreader.Field
	if tc.Paths.Dir != "" {
		var err error
		if known, err = readJobConfig(tc.Paths.Dir); err != nil {
			return launch.Job{}, err
		}
	}
	s := selection{extended: python.Importable(tc, "primus/backends/torchtitan") != ""}
	text, err := formats.TOML{Foreign: true}.Render(s.jobConfig(config, known), false)
	if err := errors.Join(append(s.faults, err)...); err != nil {
		return launch.Job{}, err
	}
	var notes []string
	if len(s.unknown) > 0 {
		notes = append(notes, "left out, because this TorchTitan does not know them: "+strings.Join(s.unknown, ", "))
	}
	if !s.extended && usesTurbo(config) {
		notes = append(notes, "the experiment asks for primus_turbo, but AMD's Python package primus cannot be imported: TorchTitan runs without its patches and converters; put its checkout into PYTHONPATH")
	}
	job := launch.Job{Program: []string{"-m", "torchtitan.train"}, PerDevice: true}
	if s.extended && python.Importable(tc, "primus/core/patches") != "" { // whose patches run before TorchTitan
		if job, err = python.ShimJob(tc, dir); err != nil {
			return launch.Job{}, err
		}
	}
	file := filepath.Join(dir, configFile)
	job.Program = append(job.Program, "--job.config_file", file)
	job.Files = append([]launch.File{{Path: file, Content: string(text)}}, job.Files...)
	job.Notes = append(job.Notes, notes...)
	return job, nil
}

// selection picks the parameters that TorchTitan reads.
type selection struct {
	extended bool // AMD's package extends the job configuration
	unknown  []string
	faults   []error
}

// ownAdditions are keys that only AMD's package reads, which are left out without a warning.
var ownAdditions = []string{turbo, "training.mock_data"}

// jobConfig returns the sections of the parameters without the keys that TorchTitan does not know.
// If known is nil, because there is no source tree, only the keys of AMD's package are left out.
func (s *selection) jobConfig(params *document.Map, known map[string]pyreader.Field) *document.Map {
	var b document.Builder
	for key, v := range params.All() {
		m, isSection := v.Map()
		if !isSection || key == backend.DispatchBlock {
			continue
		}
		f, isKnown := known[key]
		if !s.reads(key, v, known != nil, isKnown || s.extended && key == turbo) {
			continue
		}
		if kept := s.section(m, key, f.Below); kept.Len() > 0 {
			b.Set(key, document.MapValue(kept))
		}
	}
	return s.withExtension(b.Map())
}

// reads reports whether TorchTitan reads a key, and records one that it does not.
func (s *selection) reads(path string, v document.Value, checked, known bool) bool {
	if slices.Contains(ownAdditions, path) && !(s.extended && path == turbo) {
		return false
	}
	if checked && !known {
		s.unknown = append(s.unknown, strings.TrimSpace(path+" "+parenthesised(v.Origin().String())))
		return false
	}
	return true
}

func parenthesised(text string) string {
	if text == "" {
		return ""
	}
	return "(" + text + ")"
}

// section returns a section without nulls, which TOML does not have and which mean the default. It
// checks the keys unless known is nil.
func (s *selection) section(m *document.Map, path string, known map[string]pyreader.Field) *document.Map {
	var b document.Builder
	for key, v := range m.All() {
		below := path + "." + key
		f, isKnown := known[key]
		if !s.reads(below, v, known != nil, isKnown) {
			continue
		}
		if v.IsNull() {
			if isKnown && !f.Nullable {
				s.faults = append(s.faults, &document.Error{
					Origin: v.Origin(), Path: below, Problem: "given null, but TOML, from which TorchTitan reads it, has no null and the default is another value",
					Hint: "give a value, or leave the key out for the default",
				})
			}
			continue
		}
		if nested, ok := v.Map(); ok {
			b.Set(key, document.MapValue(s.section(nested, below, f.Below)))
			continue
		}
		if below == "model.converters" && !s.extended {
			v = withoutTurbo(v)
		}
		b.Set(key, v)
	}
	return b.Map()
}

// withExtension sets the key by which TorchTitan loads the module that extends the job
// configuration.
func (s *selection) withExtension(config *document.Map) *document.Map {
	module, _ := config.Get("experimental.custom_args_module")
	text, _ := module.Str()
	set, _ := config.Get("job." + customModule)
	if name, _ := set.Str(); !s.extended || text == "" || name != "" {
		return config
	}
	jobs, _ := config.Lookup("job")
	m, _ := jobs.Map()
	inner, outer := document.NewBuilder(m), document.NewBuilder(config)
	inner.Set(customModule, module)
	outer.Set("job", document.MapValue(inner.Map()))
	return outer.Map()
}

// usesTurbo reports whether the experiment uses what AMD's package adds.
func usesTurbo(params *document.Map) bool {
	on, _ := params.Get(turbo + ".enable_primus_turbo")
	yes, _ := on.Bool()
	return yes
}

// withoutTurbo returns a list of model converters without those of AMD's package.
func withoutTurbo(v document.Value) document.Value {
	items, ok := v.List()
	if !ok {
		return v
	}
	kept := []document.Value{}
	for _, item := range items {
		if !strings.HasPrefix(item.Text(), turbo) {
			kept = append(kept, item)
		}
	}
	return document.ListValue(kept).At(v.Origin())
}

// steps returns the number of steps of a run.
func steps(tc *backend.TrainContext) int { return python.Integer(tc, "training.steps") }

// tokensPerStep returns the tokens of the global batch, which by default is one batch per
// data-parallel rank.
func tokensPerStep(tc *backend.TrainContext, world int) int {
	sequences := python.Integer(tc, "training.global_batch_size")
	if sequences <= 0 {
		replicas := world
		for _, degree := range []string{"tensor", "pipeline", "context"} {
			replicas /= max(python.Integer(tc, "parallelism."+degree+"_parallel_degree"), 1)
		}
		sequences = python.Integer(tc, "training.local_batch_size") * max(replicas, 1)
	}
	return sequences * python.Integer(tc, "training.seq_len")
}

// readStep reads a line such as
//
//	step: 10  loss:  7.6543  grad_norm:  1.2345  memory:  5.67GiB(7.10%)  tps: 1,234  tflops: 12.34  mfu: 3.95%
func readStep(line string) (python.Step, bool) {
	line = python.Plain(line)
	at := strings.Index(line, "step:")
	if at < 0 || strings.HasSuffix(line[:at], "validate ") || !strings.Contains(line[at:], "loss:") {
		return python.Step{}, false
	}
	fields := map[string]string{}
	words := strings.Fields(line[at:])
	for i := 0; i+1 < len(words); i++ {
		if name, ok := strings.CutSuffix(words[i], ":"); ok {
			fields[name] = words[i+1]
		}
	}
	step, hasStep := python.Int(fields["step"])
	loss, hasLoss := python.Float(fields["loss"])
	if !hasStep || !hasLoss {
		return python.Step{}, false
	}
	s := python.Step{Step: step, Loss: loss}
	float := func(name string) float64 { return s.Float(name, fields[name]) }
	s.GradNorm, s.TokensPerDevice, s.TFLOPSPerDevice = float("grad_norm"), float("tps"), float("tflops")
	s.MemoryBytes = int64(float("memory") * (1 << 30))
	return s, true
}
