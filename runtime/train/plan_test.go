package train_test

import (
	"errors"
	"os"
	"testing"

	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/primus-fl/primus/runtime/train"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPlan(t *testing.T) {
	r := &recorder{
		env: map[string]string{"SET": "mine"}, envBlock: "BLOCK: 1", overrides: "primus_only: 5, file_sink_level: INFO, z: 0", early: true,
	}
	r.patches = []patch.Patch{
		{ID: "turns-on", Phase: patch.BuildArgs, Apply: func(c *patch.Context) error {
			return errors.Join(c.SetArg("z", 1), c.Setenv("BY_PATCH", "1"))
		}},
		{ID: "on", Phase: patch.Setup, Symbols: []string{"s"}, Condition: patch.When("z"), Apply: func(*patch.Context) error { return r.do("on") }},
		{ID: "off", Phase: patch.Setup, Condition: patch.When("y"), Apply: func(*patch.Context) error { return r.do("off") }},
		{ID: "also", Phase: patch.Setup, Symbols: []string{"s"}, Apply: func(*patch.Context) error { return r.do("also") }},
		{ID: "broken", Phase: patch.AfterTrain, Condition: patch.Condition{Holds: func(*patch.Context) (bool, error) { panic("x") }}, Apply: func(*patch.Context) error { return nil }},
	}
	s := r.prepare(t, "recorder")
	s.BackendPath = "/opt/tree"
	files, err := os.ReadDir(r.dir)
	require.NoError(t, err)
	p, err := train.NewPlan(t.Context(), s)
	require.NoError(t, err)

	assert.Equal(t, []string{"path", "convert", "patches build_args", "new", "inspect"}, r.calls, "hooks, Prepare and the trainer are not run")
	assert.Equal(t, map[string]string{"SET": "mine"}, r.env)
	after, err := os.ReadDir(r.dir)
	require.NoError(t, err)
	assert.Equal(t, files, after, "no file is made")

	assert.Equal(t, []backend.Finding{{Name: "corpus", Text: "3 files"}}, p.Findings)
	assert.Equal(t, "Recorder", p.Trainer)
	assert.Equal(t, "1.2.3", p.Version)
	assert.Equal(t, "/opt/tree", p.Paths.Dir)
	assert.Equal(t, []string{"b", "a"}, p.Hooks)
	assert.Equal(t, []string{"primus_only"}, p.Added)
	sources := map[string]string{}
	for _, c := range p.Environment {
		sources[c.Name] = c.Source
	}
	assert.Equal(t, "env block of the experiment", sources["BLOCK"])
	assert.Equal(t, "patch turns-on", sources["BY_PATCH"])
	assert.Equal(t, "default of framework recorder", sources["DEFAULT"])
	assert.NotContains(t, sources, "SET")

	var setup train.PhasePlan
	for _, phase := range p.Phases {
		if phase.Phase == patch.Setup {
			setup = phase
		}
	}
	reasons := map[string]string{}
	for _, d := range setup.Decisions {
		reasons[d.Patch.ID] = d.Reason
	}
	assert.Equal(t, map[string]string{"on": "", "also": "", "at-setup": "", "off": "condition not met: y is set"}, reasons)
	assert.Equal(t, map[string][]string{"s": {"on", "also"}}, setup.Contended)
	require.Len(t, p.Problems, 1)
	assert.Contains(t, p.Problems[0], `phase after_train: patch "broken": condition: panic: x`)

	leaves := map[string]train.Leaf{}
	for _, l := range p.Leaves() {
		leaves[l.Path] = l
	}
	assert.Equal(t, "patch turns-on", leaves["z"].Source)
	assert.Contains(t, leaves["primus_only"].Source, "exp.yaml:12")
	assert.Contains(t, leaves["a"].Source, "modules/recorder/m.yaml:1")
}

func TestPlanWithoutTheFramework(t *testing.T) {
	r := &recorder{failAt: "path", err: errors.New("no source tree")}
	p, err := train.NewPlan(t.Context(), r.prepare(t, "recorder"))
	require.NoError(t, err)
	assert.Equal(t, []string{"no source tree"}, p.Problems)
	assert.NotEmpty(t, p.Leaves())
}

func TestPlanOfABadConfiguration(t *testing.T) {
	r := &recorder{failAt: "new", err: errors.New("num_layers: given 0")}
	_, err := train.NewPlan(t.Context(), r.prepare(t, "recorder"))
	require.ErrorContains(t, err, "num_layers: given 0")

	r = &recorder{failAt: "inspect", err: errors.New("no corpus")}
	_, err = train.NewPlan(t.Context(), r.prepare(t, "recorder"))
	require.ErrorContains(t, err, "no corpus", "what the trainer finds is an error, too")
}
