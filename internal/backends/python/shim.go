package python

import (
	_ "embed" // for the shim
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/secret"
	"github.com/primus-fl/primus/runtime/backend"
)

// shim is the program that starts a framework whose command line cannot take all parameters of
// experiments.
//
//go:embed shim.py
var shim string

// The files of the shim below the run directory.
const (
	shimFile   = "primus_shim.py"
	specFile   = "primus_shim.json"
	ReportName = "report.jsonl"
)

// spec is the file that the shim reads.
type spec struct {
	Framework  string            `json:"framework"`
	Module     string            `json:"module"`
	Model      string            `json:"model,omitempty"`
	Stage      string            `json:"stage"`
	Trainer    string            `json:"trainer_class,omitempty"`
	Version    string            `json:"version,omitempty"`
	SysPath    []string          `json:"sys_path"`
	Experiment map[string]string `json:"experiment"`
	Patches    specPatches       `json:"patches"`
	Report     string            `json:"report"`
	Secrets    map[string]string `json:"secrets,omitempty"` // variables that hold parameters
	Params     *document.Map     `json:"params"`
}

// specPatches says which patches of AMD's package are applied.
type specPatches struct {
	Only   []string `json:"only"` // null for all that apply
	Strict bool     `json:"strict"`
}

// ShimJob says how a framework is started through the shim: the parameters that are not for the
// runtime are in one JSON file.
func ShimJob(tc *backend.TrainContext, dir string) (launch.Job, error) {
	root := filepath.Dir(dir)
	s := spec{
		Framework: tc.Framework, Module: tc.ModuleName, Model: tc.Module.Model, Stage: tc.Stage, Version: tc.Version, SysPath: tc.Paths.PythonPath,
		Experiment: map[string]string{
			"root": root, "workspace": tc.Experiment.Workspace, "work_group": tc.Experiment.WorkGroup, "user_name": tc.Experiment.UserName, "exp_name": tc.Experiment.ExpName,
			"file": tc.Experiment.File,
		},
		Patches: specPatches{Only: tc.OnlyPatches, Strict: tc.StrictPatches}, Report: filepath.Join(dir, ReportName), Secrets: map[string]string{},
	}
	s.Trainer = tc.Module.TrainerClass
	if v, ok := tc.Args.Lookup("trainer_class"); s.Trainer == "" && ok && !v.IsNull() {
		s.Trainer = v.Text()
	}
	var env []launch.Variable
	kept := document.NewBuilder(nil)
	for key, v := range tc.Args.Map().Without(backend.DispatchBlock).All() {
		text, isText := v.Str()
		switch {
		case strings.HasPrefix(key, backend.DispatchPrefix), key == backend.RankOps:
		case isText && secret.Name(key) && text != "":
			name := "PRIMUS_SECRET_" + strings.ToUpper(key)
			s.Secrets[key] = name
			env = append(env, launch.Variable{Name: name, Value: text, Source: "parameter " + key})
		default:
			kept.Set(key, v)
		}
	}
	s.Params = kept.Map()
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return launch.Job{}, fmt.Errorf("parameters of framework %s: %w", tc.Framework, err)
	}
	job := launch.Job{
		Program: []string{filepath.Join(dir, shimFile), filepath.Join(dir, specFile)}, PerDevice: true, Env: env,
		Files: []launch.File{{Path: filepath.Join(dir, shimFile), Content: shim}, {Path: filepath.Join(dir, specFile), Content: string(text) + "\n"}},
	}
	if Importable(tc, "primus/core/patches") == "" {
		job.Notes = append(job.Notes, "AMD's Python package primus cannot be imported, so none of its patches runs; the framework gets every argument without their changes; put the checkout of Primus into PYTHONPATH")
	}
	return job, nil
}
