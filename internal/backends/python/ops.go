package python

import (
	"context"
	_ "embed" // for the hook
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/primus-fl/primus/internal/launch"
	"github.com/primus-fl/primus/internal/rankops"
	"github.com/primus-fl/primus/runtime/backend"
)

// hook is the module that Python imports when it starts. It makes the ops of torch and of
// TransformerEngine-FL those of package primus_fl.
//
//go:embed sitecustomize.py
var hook string

// The hook has a directory of its own below the files of the run, since Python searches it first.
const (
	hookDir  = "ops"
	hookFile = "sitecustomize.py"
)

// opsModule is the vendor of TransformerEngine-FL that package primus_fl has.
const opsModule = "primus_fl.te_fl"

// asked reports whether the ops of the framework go through the op managers of its processes.
func asked(tc *backend.TrainContext) (bool, error) {
	v, ok := tc.Module.Params.Get(backend.RankOps)
	if !ok || v.IsNull() {
		return false, nil
	}
	on, isBool := v.Bool()
	if !isBool {
		return false, fmt.Errorf("%s: parameter %s: given %s, want true or false", v.Origin().Source(), backend.RankOps, v.Describe())
	}
	return on, nil
}

// withOps adds to a job what makes its processes call ops through package primus_fl.
func withOps(tc *backend.TrainContext, dir string, job launch.Job) launch.Job {
	job.Files = append(job.Files, launch.File{Path: filepath.Join(dir, hookDir, hookFile), Content: hook})
	job.PythonPath = append([]string{filepath.Join(dir, hookDir)}, job.PythonPath...)
	from, env := findOps(tc)
	if from != "" {
		job.PythonPath = append(job.PythonPath, from)
	}
	const modules = "TE_FL_PLUGIN_MODULES"
	given, _ := tc.Environ.Lookup(modules)
	if !slices.Contains(strings.Split(given, ","), opsModule) {
		env = append(env, launch.Variable{Name: modules, Value: strings.TrimPrefix(given+","+opsModule, ","), Source: backend.RankOps})
	}
	job.Env = append(job.Env, env...)
	return job
}

// findOps returns the directory of package primus_fl if Python does not find it by itself: that of
// the source tree in which this program was built, with the library.
func findOps(tc *backend.TrainContext) (dir string, env []launch.Variable) {
	if Importable(tc, "primus_fl") != "" {
		return "", nil
	}
	program, err := os.Executable()
	if err != nil {
		return "", nil
	}
	bin := filepath.Dir(program)
	dir, lib := filepath.Join(filepath.Dir(bin), "python"), filepath.Join(bin, "lib", "libprimus.so")
	if !Exists(filepath.Join(dir, "primus_fl")) || !Exists(lib) {
		return "", nil
	}
	if _, set := tc.Environ.Lookup("PRIMUS_LIBRARY"); !set {
		env = []launch.Variable{{Name: "PRIMUS_LIBRARY", Value: lib, Source: backend.RankOps}}
	}
	return dir, env
}

// followOps starts to collect what the op managers of the processes report, and to send them the
// policy of the run whenever it changes, until stop is called.
func (t *trainer) followOps(ctx context.Context) (socket string, stop func(), err error) {
	policy, generation := t.policyText()
	c, err := rankops.Listen(policy, rankops.Sink{
		Event: t.opEvent, Calls: t.opCalls, Warn: func(text string) { t.warn("%s", text) },
	})
	if err != nil {
		return "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	following.Go(func() {
		tick := time.NewTicker(policyInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if t.tc.Manager != nil && t.tc.Manager.Generation() != generation {
				var now string
				if now, generation = t.policyText(); now != policy {
					policy = now
					c.SetPolicy(policy)
				}
			}
		}
	})
	return c.Socket(), func() {
		cancel()
		following.Wait()
		c.Close()
		t.tellUnused()
	}, nil
}

// policyInterval is how long a change of the policy waits before the processes get it.
const policyInterval = 200 * time.Millisecond

// policyText returns the policy of the run for the processes, and its generation.
func (t *trainer) policyText() (text string, generation uint64) {
	if t.tc.Manager == nil {
		return "", 0
	}
	state := t.tc.Manager.PolicyStack().State()
	text, err := rankops.PolicyText(state.Policy)
	if err != nil {
		t.warn("the ranks keep the policy that they have: %v", err)
	}
	return text, state.Generation
}

// opCalls passes on the calls of a rank.
func (t *trainer) opCalls(rank int, calls []backend.RankCalls) {
	t.ranks.RankCalls(rank, calls)
	if o, ok := t.tc.Observer.(backend.RankCallObserver); ok {
		o.RankCalls(rank, calls)
	}
}

// tellUnused warns if no op of the framework went through the op managers.
func (t *trainer) tellUnused() {
	if !slices.ContainsFunc(t.ranks.Uses(), func(u backend.RankUse) bool { return u.Calls > 0 }) {
		t.warn("%s: true, but no op of %s was called through primus_fl on this node: its tensors may be on devices, or it may have modules of its own; the table of ops says nothing about it", backend.RankOps, t.f.Name)
	}
}
