package serve_test

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/primus-fl/primus/internal/runs"
	"github.com/primus-fl/primus/internal/serve"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRun(t *testing.T) {
	b := newBench(t, nil)
	assert.Equal(t, http.StatusServiceUnavailable, b.ask(http.MethodGet, "/readyz", "").status)
	b.run.RunStarted(backend.Run{Name: "exp a/b", Model: "llama", FirstStep: 5, Steps: 9004, Parameters: 7})
	assert.Equal(t, http.StatusOK, b.ask(http.MethodGet, "/readyz", "").status)
	valid := 2.5
	for step := 5; step <= 9004; step++ {
		s := backend.Step{Step: step, Loss: float64(step), TokensPerSecond: 100}
		if step == 6000 {
			s.ValidLoss = &valid
		}
		if step == 9004 {
			s.Loss = math.NaN()
		}
		b.run.StepDone(s)
	}
	all := read[[]runs.Run](b, "/v1/runs")
	require.Len(t, all, 1)
	assert.Equal(t, "running 9004", fmt.Sprint(all[0].State, " ", all[0].Step))
	assert.Nil(t, all[0].Loss, "no number that JSON has")
	assert.InDelta(t, 2.5, *all[0].ValidLoss, 0)
	points := read[[]runs.Point](b, "/v1/runs/exp%20a%2Fb/steps")
	assert.Less(t, len(points), 2048)
	assert.Greater(t, len(points), 1024)
	assert.Equal(t, 5, points[0].Step)
	kept := false
	for i, p := range points {
		kept = kept || p.ValidLoss != nil
		assert.True(t, i == 0 || points[i-1].Step < p.Step, "in order")
	}
	assert.True(t, kept, "evaluations are not thinned out")
	assert.Equal(t, 8000, read[[]runs.Point](b, "/v1/runs/exp%20a%2Fb/steps?from=8000")[0].Step/10*10)
	b.run.RunEnded(backend.Result{Run: backend.Run{Name: "exp a/b"}, Err: fmt.Errorf("step 9004: %w", backend.ErrInterrupted)})
	assert.Equal(t, runs.Interrupted, read[[]runs.Run](b, "/v1/runs")[0].State)
}

// An operator sees where a run trains, how long, what is saved, what has gone wrong, and the end of
// its log.
func TestWhatAnOperatorAsksFirst(t *testing.T) {
	b := newBench(t, nil)
	b.run.CheckpointSaved(0) // of new weights, before training begins
	b.run.RunStarted(backend.Run{Name: "exp", Dir: "out/exp", FirstStep: 8, Steps: 20})
	run := read[[]runs.Run](b, "/v1/runs")[0]
	assert.Equal(t, "exp 0 of 1, 7", fmt.Sprintf("%s %d of %d, %d", run.ID, run.Rank, run.WorldSize, run.CheckpointStep))
	assert.Nil(t, run.CheckpointAgeSeconds, "this process has saved nothing")
	assert.NotEmpty(t, run.Host)
	assert.True(t, strings.HasPrefix(run.Dir, "/") && strings.HasSuffix(run.Dir, "/out/exp"), run.Dir)

	require.NoError(t, b.add())
	b.run.StepDone(backend.Step{Step: 8})
	b.run.CheckpointSaved(8)
	fmt.Fprintf(&b.tail, "one\ntwo\nthree\n")
	run = read[[]runs.Run](b, "/v1/runs")[0]
	assert.Equal(t, 8, run.CheckpointStep)
	assert.GreaterOrEqual(t, *run.CheckpointAgeSeconds, 0.0)
	assert.Positive(t, run.ElapsedSeconds)
	assert.Positive(t, *run.ETASeconds)
	used := read[[]runs.Use](b, "/v1/runs/exp/impls")
	require.Len(t, used, 1)
	assert.Equal(t, "residual_add default.flagos 1", fmt.Sprint(used[0].Op, " ", used[0].Impl, " ", used[0].Calls))
	got := b.ask(http.MethodGet, "/v1/runs/exp/log?lines=2", "")
	assert.Equal(t, "text/plain; charset=utf-8 two\nthree\n", got.header.Get("Content-Type")+" "+got.body)
	assert.Equal(t, http.StatusNotFound, b.ask(http.MethodGet, "/v1/runs/other/log", "").status)
	assert.Equal(t, http.StatusUnprocessableEntity, b.ask(http.MethodGet, "/v1/runs/exp/log?lines=0", "").status)

	process := read[serve.Process](b, "/v1/process")
	assert.Positive(t, process.CPUs)
	if process.ResidentBytes != nil {
		assert.Greater(t, *process.ResidentBytes, 1e6)
	}
}

// Whoever has a token can save and stop a run, and nobody else; the log says who it was.
func TestARunIsSavedAndStopped(t *testing.T) {
	var saves int
	var stopped error
	b := newBench(t, func(_ *serve.Config, set *serve.Settings) {
		set.Operator = serve.Operator{Save: func() { saves++ }, Stop: func(reason error) { stopped = reason }}
	})
	post := func(path string, headers ...string) reply { return b.ask(http.MethodPost, path, "", headers...) }
	assert.Equal(t, http.StatusNotFound, post("/v1/runs/exp/save", bearer).status, "there is no run yet")
	b.run.RunStarted(backend.Run{Name: "exp", FirstStep: 1, Steps: 20})
	for _, what := range []string{"save", "stop"} {
		path := "/v1/runs/exp/" + what
		assert.Equal(t, http.StatusUnauthorized, post(path).status)
		assert.Equal(t, http.StatusUnauthorized, post(path, bearer+"x").status)
		assert.Equal(t, http.StatusForbidden, post(path, bearer, "Origin: http://evil.example").status)
		assert.Equal(t, http.StatusForbidden, post(path, bearer, "Sec-Fetch-Site: cross-site").status)
		assert.Equal(t, http.StatusMethodNotAllowed, b.ask(http.MethodGet, path, "", bearer).status, "a link does nothing")
		assert.Equal(t, http.StatusNotFound, post("/v1/runs/other/"+what, bearer).status)
		assert.Zero(t, saves)
	}
	require.NoError(t, stopped)

	got := post("/v1/runs/exp/save", bearer)
	assert.Equal(t, http.StatusAccepted, got.status, got.body)
	assert.JSONEq(t, `{"run": "exp", "asked": "save"}`, got.body)
	assert.Equal(t, http.StatusAccepted, post("/v1/runs/exp/stop", bearer).status)
	assert.Equal(t, 1, saves)
	require.EqualError(t, stopped, "alice over the service")
	assert.Regexp(t, `msg="save run" by=alice from=127\.0\.0\.1:\d+ run=exp`, b.log.String())
	assert.Contains(t, b.log.String(), `msg="stop run" by=alice`)

	b.run.RunEnded(backend.Result{Err: errors.New("the disk is full")})
	refused := post("/v1/runs/exp/save", bearer)
	assert.Equal(t, http.StatusConflict, refused.status)
	assert.Equal(t, `run "exp" is failed; only one that is running can save`, refused.problem(t).Detail)
	assert.Equal(t, 1, saves)
}

func TestARunOfAnotherProcessIsNotStopped(t *testing.T) {
	b := newBench(t, nil)
	b.run.RunStarted(backend.Run{Name: "exp", FirstStep: 1, Steps: 20})
	got := b.ask(http.MethodPost, "/v1/runs/exp/stop", "", bearer)
	assert.Equal(t, http.StatusConflict, got.status)
	assert.Contains(t, got.problem(t).Detail, "another process")
}
