package python

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/runtime/backend"
)

// Framework describes a Python framework for its trainer.
type Framework struct {
	Name string

	// Job says how the framework is started for the arguments of tc. Its files go to dir. The trainer
	// adds what all frameworks share.
	Job func(tc *backend.TrainContext, dir string) (launch.Job, error)

	// Step reads a step from a line of the log. What it cannot read of a line of a step is in
	// Step.Unread, even if that makes the line useless.
	Step func(line string) (Step, bool)

	// Steps and TokensPerStep follow from the arguments, 0 if unknown; world is the number of
	// processes.
	Steps         func(tc *backend.TrainContext) int
	TokensPerStep func(tc *backend.TrainContext, world int) int

	// FromLast says that the last rank writes the lines of the steps, not the first.
	FromLast bool
}

// Step is a step as a line of a log reports it. Values that the line does not have are zero.
type Step struct {
	Step, Steps     int
	Loss            float64
	LR, GradNorm    float64
	Seconds         float64 // duration of the step
	Tokens          int     // of all processes
	GlobalBatch     int     // sequences of all processes
	TokensPerDevice float64 // per second
	TFLOPSPerDevice float64
	MemoryBytes     int64 // of a device

	Unread []Unread // values that the line has and that are no numbers
}

// Unread is a value of a line that is not the number it should be.
type Unread struct{ Name, Text string }

// Float returns the number that a text begins with. It returns 0 for an empty text, and for another
// one, which it adds to Unread under a name.
func (s *Step) Float(name, text string) float64 {
	v, ok := Float(text)
	s.check(name, text, ok)
	return v
}

// Int is Float for whole numbers.
func (s *Step) Int(name, text string) int {
	v, ok := Int(text)
	s.check(name, text, ok)
	return v
}

func (s *Step) check(name, text string, ok bool) {
	if text = strings.TrimSpace(text); !ok && text != "" {
		s.Unread = append(s.Unread, Unread{name, text})
	}
}

// Adapter has what the adapters of all Python frameworks do.
type Adapter struct {
	framework string
	trainers  backend.Trainers
}

// NewAdapter returns the part of an adapter that does not depend on the framework, with its trainer
// classes.
func NewAdapter(f Framework, classes ...backend.TrainerClass) Adapter {
	for i := range classes {
		name := classes[i].Name
		classes[i].New = func(tc *backend.TrainContext) (backend.Trainer, error) { return newTrainer(tc, f, name), nil }
	}
	return Adapter{f.Name, classes}
}

// Prepare does nothing: the processes prepare their framework.
func (Adapter) Prepare(context.Context, *backend.TrainContext) error { return nil }

// LoadTrainer returns the trainer class of a stage.
func (a Adapter) LoadTrainer(stage, class string) (backend.TrainerClass, error) {
	return a.trainers.Load(a.framework, stage, class)
}

// Stages returns the stages that have a trainer class.
func (a Adapter) Stages() []string { return a.trainers.Stages() }

// UsesData implements backend.DataUser.
func (Adapter) UsesData() {}

// Integer returns the parameter at a path, or 0 if it is no number.
func Integer(tc *backend.TrainContext, path string) int {
	v, _ := tc.Args.Lookup(path)
	n, _ := v.Int64()
	return int(n)
}

var _ backend.DataUser = Adapter{}

// Importable returns the directory in which Python finds a module, "" if there is none. The module
// is a path such as primus/core/patches; the directories are the source tree, PYTHONPATH, the
// virtual environment and the checkout of Primus that the experiment lies in.
func Importable(tc *backend.TrainContext, module string) string {
	dirs := slices.Concat(tc.Paths.PythonPath, SitePackages(tc.Environ.Lookup))
	if checkout := tc.Checkout(); checkout != "" {
		dirs = append(dirs, checkout)
	}
	for _, dir := range dirs {
		if Exists(filepath.Join(dir, filepath.FromSlash(module))) || Exists(filepath.Join(dir, filepath.FromSlash(module)+".py")) {
			return dir
		}
	}
	return ""
}

// Exists reports whether there is a file or directory of this name.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// root is the run directory; launchDir and ranksDir are below it.
func root(tc *backend.TrainContext) (string, error) {
	dir, err := filepath.Abs(tc.Experiment.RootPath())
	if err != nil {
		return "", fmt.Errorf("run directory: %w", err)
	}
	return dir, nil
}

const (
	launchDir = "launch"
	ranksDir  = "ranks"
)

// plan returns the launch plan of a run.
func plan(tc *backend.TrainContext, f Framework) (*launch.Plan, error) {
	dir, err := root(tc)
	if err != nil {
		return nil, err
	}
	job, err := f.Job(tc, filepath.Join(dir, launchDir))
	if err != nil {
		return nil, err
	}
	job.PythonPath = append(slices.Clone(tc.Paths.PythonPath), job.PythonPath...)
	if checkout := tc.Checkout(); checkout != "" && Importable(tc, "primus/core") == checkout {
		job.PythonPath = append(job.PythonPath, checkout)
	}
	on, err := asked(tc)
	if err != nil {
		return nil, err
	}
	if on {
		job = withOps(tc, filepath.Join(dir, launchDir), job)
	}
	job.LogDir = filepath.Join(dir, ranksDir)
	var env []launch.Variable
	for _, c := range tc.Environ.Changes() {
		env = slices.DeleteFunc(env, func(v launch.Variable) bool { return v.Name == c.Name })
		env = append(env, launch.Variable{Name: c.Name, Value: c.Value, Source: c.Source})
	}
	vars, without := policy(tc)
	for _, v := range vars {
		env = slices.DeleteFunc(env, func(other launch.Variable) bool { return other.Name == v.Name })
	}
	if len(without) > 0 {
		job.Notes = append(job.Notes, "TransformerEngine-FL has no variable for these fields of the dispatch policy, so they have no effect in its processes: "+strings.Join(without, ", "))
	}
	job.Env = slices.Concat(env, vars, job.Env)
	slices.SortStableFunc(job.Env, func(a, b launch.Variable) int { return cmp.Compare(a.Name, b.Name) })
	return launch.NewPlan(job, tc.Launch)
}

// Shown returns a program in readable form.
func Shown(argv []string) string {
	words := make([]string, len(argv))
	for i, word := range argv {
		words[i] = launch.Quote(word)
	}
	return strings.Join(words, " ")
}

// perStep returns the duration of a step: the one in its line, or the time since the previous line.
func perStep(s Step, since time.Duration, steps int) time.Duration {
	if s.Seconds > 0 {
		return time.Duration(s.Seconds * float64(time.Second))
	}
	return since / time.Duration(max(steps, 1))
}
