// Package tracking sends the values of the steps of a run to the trackers that its parameters name:
// a server of MLflow, and offline files of Weights & Biases.
//
// # Concepts
//
// Trackers are the parameters, Open begins to track, Log passes the values of a step on, and End
// returns a line per tracker. A tracker that fails is warned of once and left out from then on;
// it never ends a run. The ids of a run at its trackers are in tracking.json of its directory, so
// that a run which goes on stays one run at MLflow.
//
// # Concurrency
//
// A Set belongs to one goroutine.
//
// # Errors
//
// Only wrong parameters are errors.
package tracking

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"time"

	"github.com/primus-fl/primus/document"
	"github.com/primus-fl/primus/internal/durable"
	"github.com/primus-fl/primus/internal/rundir"
	"github.com/primus-fl/primus/internal/rundir/mlflow"
	"github.com/primus-fl/primus/internal/rundir/tensorboard"
	"github.com/primus-fl/primus/internal/rundir/wandb"
	"github.com/primus-fl/primus/internal/secret"
)

// Trackers are the parameters of trackers, with the names of Megatron and Primus.
type Trackers struct {
	DisableMLflow    bool   `param:"disable_mlflow"`
	MLflowURI        string `param:"mlflow_tracking_uri"`    // "" means the variable MLFLOW_TRACKING_URI
	MLflowExperiment string `param:"mlflow_experiment_name"` // "" means the work group and the user
	MLflowRun        string `param:"mlflow_run_name"`        // "" means the name of the experiment

	DisableWandb bool   `param:"disable_wandb"`
	WandbProject string `param:"wandb_project"`
	WandbName    string `param:"wandb_exp_name"` // "" means the name of the experiment
	WandbDir     string `param:"wandb_save_dir"` // "" means the run directory
	WandbEntity  string `param:"wandb_entity"`
}

// Run describes a run.
type Run struct {
	Dir       *rundir.Dir
	Name      string
	Group     string // of runs: work group and user
	FirstStep int64
	Params    *document.Map // those of the run; secrets are left out
	Env       func(name string) string
	Warn      func(text string)
}

// StateName is the file of a run directory with the ids of the run at its trackers.
const StateName = "tracking.json"

// state is the content of tracking.json.
type state struct {
	MLflowURI string `json:"mlflow_tracking_uri"`
	MLflowRun string `json:"mlflow_run_id"`
}

// MLflow reports whether a run is sent to MLflow, and to which server.
func (c Trackers) MLflow(env func(string) string) (uri string, asked bool) {
	uri = c.MLflowURI
	if uri == "" && env != nil {
		uri = env("MLFLOW_TRACKING_URI")
	}
	asked = c.MLflowURI != "" || c.MLflowRun != "" || c.MLflowExperiment != ""
	return uri, asked && !c.DisableMLflow
}

// Validate returns every fault of the configuration; env returns variables of the environment.
func (c Trackers) Validate(env func(string) string) error {
	var faults []error
	if uri, asked := c.MLflow(env); asked {
		u, err := url.Parse(uri)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			faults = append(faults, errors.New("mlflow_tracking_uri: it, or the variable MLFLOW_TRACKING_URI, has to be http://HOST:PORT or https://HOST; disable_mlflow=true trains without MLflow"))
		}
	}
	if c.WandbProject == "" && c.WandbName != "" && !c.DisableWandb {
		faults = append(faults, fmt.Errorf("wandb_project: given null with wandb_exp_name %q, want the name of a project", c.WandbName))
	}
	return errors.Join(faults...)
}

// Set is the trackers of a run; nil tracks nothing.
type Set struct {
	warn   func(string)
	mlflow *mlflow.Client
	wandb  *wandb.Writer
	lines  []string
}

// Open begins to track. Parameters that Validate refuses are an error.
func Open(c Trackers, r Run) (*Set, error) {
	if err := c.Validate(r.Env); err != nil {
		return nil, err
	}
	t := &Set{warn: r.Warn}
	var err error
	if uri, asked := c.MLflow(r.Env); asked {
		if t.mlflow, err = openMLflow(c, uri, r); err != nil {
			return nil, err
		}
	}
	if c.WandbProject != "" && !c.DisableWandb {
		dir := c.WandbDir
		if dir == "" {
			dir = r.Dir.Path()
		}
		t.wandb, err = wandb.Create(wandb.Settings{Dir: dir, Project: c.WandbProject, Entity: c.WandbEntity, Name: or(c.WandbName, r.Name), Group: r.Name, Config: params(r.Params)})
		if err != nil {
			t.gaveUp("wandb", err)
		}
	}
	return t, nil
}

// params returns the parameters of a run by their dotted keys, without secrets.
func params(all *document.Map) map[string]any {
	shown := map[string]any{}
	for key, v := range all.Leaves() {
		if !secret.Name(key) {
			shown[key] = v.Any()
		}
	}
	return shown
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// gaveUp warns that a tracker is left out.
func (t *Set) gaveUp(name string, err error) {
	t.warn(fmt.Sprintf("%s is left out from now on; training goes on: %v", name, err))
	t.lines = append(t.lines, fmt.Sprintf("%s ended early: %v", name, err))
}

// openMLflow begins a run at MLflow, or lets the one of tracking.json go on.
func openMLflow(c Trackers, uri string, r Run) (*mlflow.Client, error) {
	s := mlflow.Settings{
		URI: uri, Experiment: or(c.MLflowExperiment, r.Group), Name: or(c.MLflowRun, r.Name), Warn: r.Warn,
		Token: r.Env("MLFLOW_TRACKING_TOKEN"), User: r.Env("MLFLOW_TRACKING_USERNAME"), Password: r.Env("MLFLOW_TRACKING_PASSWORD"),
	}
	if old, err := readState(r.Dir); err != nil {
		r.Warn(err.Error())
	} else if r.FirstStep > 1 && old.MLflowURI == uri {
		s.RunID = old.MLflowRun
	}
	for key, v := range r.Params.Leaves() {
		if !secret.Name(key) {
			s.Params = append(s.Params, mlflow.Param{Key: key, Value: v.String()})
		}
	}
	s.Started = func(id string) {
		text, err := json.MarshalIndent(state{uri, id}, "", "  ")
		if err == nil {
			err = r.Dir.WriteFile(StateName, append(text, '\n'))
		}
		if err != nil {
			r.Warn(fmt.Sprintf("%s is not written, so the run will be a new one at MLflow if it is continued: %v", StateName, err))
		}
	}
	return mlflow.Open(s)
}

// maxState bounds the size of tracking.json.
const maxState = 1 << 20

func readState(dir *rundir.Dir) (s state, err error) {
	text, err := durable.ReadRegular(dir.Path(StateName), maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return state{}, fmt.Errorf("tracking: %s is not read: %w", filepath.Join(dir.Path(), StateName), err)
	}
	return s, nil
}

// Log passes the values of a step on.
func (t *Set) Log(step int64, values ...tensorboard.Scalar) {
	if t == nil {
		return
	}
	if t.mlflow != nil {
		t.mlflow.Log(step, time.Now(), values...)
	}
	if t.wandb != nil {
		if err := t.wandb.Log(step, values...); err != nil {
			t.gaveUp("wandb", errors.Join(err, t.wandb.Close(true)))
			t.wandb = nil
		}
	}
}

// End ends tracking and returns a line for each tracker. Further calls return the same.
func (t *Set) End(failed bool) []string {
	if t == nil {
		return nil
	}
	if t.mlflow != nil {
		t.lines = append(t.lines, "mlflow "+t.mlflow.Close(failed))
		t.mlflow = nil
	}
	if t.wandb != nil {
		line := "wandb sync " + t.wandb.Dir()
		if err := t.wandb.Close(failed); err != nil {
			line = fmt.Sprintf("wandb ended early: %v", err)
		}
		t.lines, t.wandb = append(t.lines, line), nil
	}
	return t.lines
}
