package patch_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/primus-fl/primus/runtime/backend"
	"github.com/primus-fl/primus/runtime/patch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func nothing(*patch.Context) error { return nil }

func newSet(t *testing.T, patches ...patch.Patch) *patch.Set {
	t.Helper()
	s, err := patch.NewSet(patches...)
	require.NoError(t, err)
	return s
}

func TestOrder(t *testing.T) {
	p := func(id, backend string, phase patch.Phase, priority int) patch.Patch {
		return patch.Patch{ID: id, Backend: backend, Phase: phase, Priority: patch.At(priority), Apply: nothing}
	}
	s := newSet(t,
		p("any", "", "", 50), p("backend", "x", "", 50), p("phase", "", "p", 50), p("both", "x", "p", 50), p("both2", "x", "p", 50),
		p("late", "x", "p", 100), p("early", "", "", -100), p("default", "x", "p", patch.DefaultPriority),
		p("other-backend", "y", "p", 0), p("other-phase", "x", "q", 0),
	)
	_, err := patch.NewSet(p("has blank", "", "", 0))
	require.ErrorContains(t, err, `patch "has blank"`)
	report, err := s.Run(&patch.Context{Backend: "x", Phase: "p"}, patch.Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"early", "both", "both2", "default", "phase", "backend", "any", "late"}, report.Applied)
	assert.Equal(t, 50, patch.Priority{}.Int())
}

// A condition does not see what a handler of the same phase does.
func TestConditionsComeBeforeHandlers(t *testing.T) {
	args := backend.NewArgs(mapping(t, map[string]any{"a": 1}))
	s := newSet(t,
		patch.Patch{ID: "first", Priority: patch.At(0), Apply: func(c *patch.Context) error { return c.SetArg("a", 2) }},
		patch.Patch{
			ID: "second", Apply: nothing,
			Condition: patch.Condition{Text: "a is 2", Holds: func(c *patch.Context) (bool, error) {
				v, _ := c.Args.Lookup("a")
				return v.Text() == "2", nil
			}},
		})
	report, err := s.Run(&patch.Context{Args: args}, patch.Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"first"}, report.Applied)
	report, err = s.Run(&patch.Context{Args: args}, patch.Options{})
	require.NoError(t, err)
	assert.Contains(t, report.Applied, "second")
}

func TestFailingCondition(t *testing.T) {
	for name, holds := range map[string]func(*patch.Context) (bool, error){
		"error": func(*patch.Context) (bool, error) { return true, errors.New("boom") },
		"panic": func(*patch.Context) (bool, error) { panic("boom") },
	} {
		ran := false
		s := newSet(t,
			patch.Patch{ID: "first", Apply: func(*patch.Context) error { ran = true; return nil }},
			patch.Patch{ID: "broken", Apply: nothing, Condition: patch.Condition{Holds: holds}})
		_, err := s.Run(&patch.Context{}, patch.Options{})
		var e *patch.Error
		require.ErrorAs(t, err, &e, name)
		assert.Equal(t, "broken", e.ID)
		assert.ErrorContains(t, err, `patch "broken": condition: `)
		assert.ErrorContains(t, err, "boom")
		assert.False(t, ran, "no handler runs")
		_, err = s.Plan(&patch.Context{}, patch.Only("first"))
		assert.NoError(t, err, "a condition that the filter excludes is not evaluated")
	}
}

var greet = patch.NewPoint[func() string]("test.greet", "it greets")

// extensible returns a context with everything that a handler may change.
func extensible(t *testing.T, log slog.Handler) (*patch.Context, *patch.Slot[func() string], map[string]string) {
	t.Helper()
	ps := &patch.Points{}
	slot := patch.Declare(ps, greet, func() string { return "hello" })
	vars := map[string]string{"OLD": "1"}
	return &patch.Context{
		Backend: "x", Phase: patch.Setup, Points: ps, Environ: backend.MapEnviron(vars),
		Args: backend.NewArgs(mapping(t, map[string]any{"a": 1, "n": map[string]any{"b": 2}})), Log: slog.New(log),
	}, slot, vars
}

func change(c *patch.Context) error {
	return errors.Join(
		patch.Wrap(c, greet, func(next func() string) func() string { return func() string { return next() + "!" } }),
		c.SetArg("a", 5), c.SetArg("n.b", 6), c.SetArg("new.x", 7), c.Setenv("OLD", "2"), c.Setenv("NEW", "3"),
	)
}

func TestFailedHandlerLeavesNothingBehind(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("boom") },
		"panic": func() error { panic("boom") },
	} {
		log := &lines{}
		c, slot, vars := extensible(t, log)
		s := newSet(t,
			patch.Patch{ID: "good", Style: patch.Wrapping, Apply: func(c *patch.Context) error {
				return errors.Join(c.Setenv("GOOD", "1"), patch.Wrap(c, greet, func(next func() string) func() string {
					return func() string { return "<" + next() + ">" }
				}))
			}},
			patch.Patch{ID: "bad", Apply: func(c *patch.Context) error { return errors.Join(change(c), fail()) }})
		report, err := s.Run(c, patch.Options{})
		require.NoError(t, err, "the run goes on")
		require.Len(t, report.Failed, 1, name)
		assert.ErrorContains(t, report.Failed[0], `patch "bad": `)
		assert.Equal(t, "<hello>", slot.Func()())
		assert.Equal(t, map[string]string{"OLD": "1", "GOOD": "1"}, vars)
		assert.Equal(t, map[string]any{"a": int64(1), "n": map[string]any{"b": int64(2)}}, c.Args.Map().Any())
		assert.True(t, log.has("error", "✗ Patch 'bad' failed: ", "boom"), "%v", log.all)
	}
}

func TestStopOnError(t *testing.T) {
	boom := errors.New("boom")
	ran := false
	s := newSet(t,
		patch.Patch{ID: "bad", Apply: func(*patch.Context) error { return boom }},
		patch.Patch{ID: "next", Apply: func(*patch.Context) error { ran = true; return nil }})
	_, err := s.Run(&patch.Context{}, patch.Options{StopOnError: true})
	require.ErrorIs(t, err, boom)
	assert.ErrorContains(t, err, `patch "bad"`)
	assert.False(t, ran)
}

func TestPatchThatChangesNothing(t *testing.T) {
	log := &lines{}
	c, _, _ := extensible(t, log)
	s := newSet(t,
		patch.Patch{ID: "idle", Style: patch.ArgRewrite, Apply: func(c *patch.Context) error { return c.SetArg("a", 1) }},
		patch.Patch{ID: "watcher", Style: patch.Lifecycle, Apply: nothing},
		patch.Patch{ID: "noted", Style: patch.Replacement, Apply: func(c *patch.Context) error { c.Changed(); return nil }},
		patch.Patch{ID: "busy", Style: patch.Wrapping, Apply: change})
	report, err := s.Run(c, patch.Options{})
	require.NoError(t, err)
	assert.Len(t, report.Applied, 4)
	assert.Equal(t, []string{"idle"}, report.NoEffect)
	assert.True(t, log.has("warn", "idle changed nothing"))
}

func TestDryRunChangesNothing(t *testing.T) {
	log := &lines{}
	c, slot, vars := extensible(t, log)
	report, err := newSet(t, patch.Patch{ID: "busy", Apply: change}).Run(c, patch.Options{DryRun: true})
	require.NoError(t, err)
	assert.Equal(t, []string{"busy"}, report.Applied)
	assert.Equal(t, "hello", slot.Func()())
	assert.Equal(t, map[string]string{"OLD": "1"}, vars)
	assert.True(t, log.has("info", "[Patch] (dry-run) Would apply: busy (priority=50)"))
	assert.True(t, log.has("info", "[Patch] Applied 1/1 patches for x/setup: ['busy']"))
}

func TestIdleLinesAreQuiet(t *testing.T) {
	log := &lines{}
	s := newSet(t, patch.Patch{ID: "a", Apply: nothing, Condition: patch.When("a")})
	_, err := s.Run(&patch.Context{Log: slog.New(log)}, patch.Options{IdleLevel: slog.LevelDebug})
	require.NoError(t, err)
	assert.Empty(t, log.with("info"))
	assert.True(t, log.has("debug", "⊘ Skipped: a (condition not met)"))
}

func TestPlanGivesReasons(t *testing.T) {
	s := newSet(t,
		patch.Patch{ID: "runs", Apply: nothing},
		patch.Patch{ID: "unlisted", Apply: nothing},
		patch.Patch{ID: "old", BackendVersions: []string{"<0.17"}, Apply: nothing},
		patch.Patch{ID: "future", PrimusVersions: []string{">=99"}, Apply: nothing},
		patch.Patch{ID: "off", Condition: patch.When("z.loss"), Apply: nothing})
	plan, err := s.Plan(&patch.Context{BackendVersion: "0.17.0", PrimusVersion: "1.0"}, patch.Only("runs", "old", "future", "off"))
	require.NoError(t, err)
	reasons := map[string]string{}
	for _, d := range plan.Decisions {
		assert.Equal(t, d.Reason == "", d.Run)
		reasons[d.Patch.ID] = d.Reason
	}
	assert.Equal(t, map[string]string{
		"runs": "", "unlisted": "not listed in PRIMUS_PATCHES",
		"old":    "backend version mismatch: required=['<0.17'], actual=0.17.0",
		"future": "primus version mismatch: required=['>=99'], actual=1.0",
		"off":    "condition not met: z.loss is set",
	}, reasons)
}

func TestWhen(t *testing.T) {
	params := mapping(t, map[string]any{
		"yes": true, "no": false, "one": 1, "zero": 0, "half": 0.5, "none": nil, "text": "x", "empty": "",
		"list": []int{1}, "nolist": []int{}, "map": map[string]any{"in": 1}, "nomap": map[string]any{},
	})
	c := &patch.Context{Params: params}
	for _, key := range []string{"yes", "one", "half", "text", "list", "map", "map.in"} {
		assert.True(t, c.IsSet(key), key)
	}
	for _, key := range []string{"no", "zero", "none", "empty", "nolist", "nomap", "absent", "map.out", "one.below"} {
		assert.False(t, c.IsSet(key), key)
	}
}

func TestParam(t *testing.T) {
	c := &patch.Context{Params: mapping(t, map[string]any{"i": 3, "f": 0.5, "s": "x", "b": false, "none": nil})}
	f, err := patch.Param(c, "i", 1.5)
	require.NoError(t, err)
	assert.InDelta(t, 3, f, 0)
	b, err := patch.Param(c, "b", true)
	require.NoError(t, err)
	assert.False(t, b, "false is a value")
	n, err := patch.Param(c, "none", int64(7))
	require.NoError(t, err)
	assert.Equal(t, int64(7), n, "null is as good as absent")
	_, err = patch.Param(c, "s", 1.5)
	assert.EqualError(t, err, `s: given string "x", want a number`)
}

func TestCheck(t *testing.T) {
	s := newSet(t, patch.Patch{ID: "a", Backend: "natvie", Phase: "befor_train", Style: "wrap", Apply: nothing})
	err := s.Check([]string{"dummy", "native"})
	for _, text := range []string{
		`patch "a": unknown backend "natvie"`, `did you mean "native"?`, `unknown phase "befor_train"`,
		`did you mean "before_train"?`, "no description", `given style "wrap"`,
	} {
		assert.ErrorContains(t, err, text)
	}
	assert.NoError(t, newSet(t, patch.Patch{ID: "a", Description: "d", Style: patch.Lifecycle, Apply: nothing}).Check(nil))
}

func TestNewSetFaults(t *testing.T) {
	_, err := patch.NewSet(
		patch.Patch{ID: "a", Apply: nothing}, patch.Patch{ID: "a", Apply: nothing}, patch.Patch{Apply: nothing},
		patch.Patch{ID: "b"}, patch.Patch{ID: "c", Apply: nothing, BackendVersions: []string{"a(*"}})
	for _, text := range []string{`two patches with id "a"`, "runtime/patch_test/run_test.go:", "no id", `"b": it has no handler`, `"c": version pattern "a(*"`} {
		assert.ErrorContains(t, err, text)
	}
}

func TestUnknownIDs(t *testing.T) {
	s := newSet(t, patch.Patch{ID: "native.z_loss", Apply: nothing})
	assert.Empty(t, patch.ParseFilter("native.z_loss").Unknown(s))
	assert.Empty(t, patch.ParseFilter("none").Unknown(s))
	assert.Equal(t, []string{
		`PRIMUS_PATCHES: no patch "native.zloss"; did you mean "native.z_loss"?`,
		`PRIMUS_PATCHES: no patch "all"; primus patches list shows the ids`,
	}, patch.ParseFilter("native.zloss, all").Unknown(s))
}
