package runs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/primus-fl/primus/internal/primustest"
	"github.com/primus-fl/primus/internal/runs"
	"github.com/primus-fl/primus/opmanager"
	"github.com/primus-fl/primus/runtime/backend"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// writer is a run of this process that leaves files.
type writer struct {
	t    *testing.T
	dir  string
	run  backend.Run
	all  backend.Observers
	log  *primustest.Buffer
	step int
}

func newWriter(t *testing.T, dir string) *writer {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	stats := []opmanager.ImplStats{{Op: "rope", ImplInfo: opmanager.ImplInfo{ID: "reference.go"}, Calls: 7, Fallbacks: 3, Declines: 2, Errors: 1}, {Op: "idle"}}
	w := &writer{t: t, dir: dir, run: backend.Run{Name: filepath.Base(dir), Model: "llama", Dir: dir, FirstStep: 1, Steps: 4}, log: &primustest.Buffer{}}
	board := runs.NewBoard(runs.BoardSettings{Stats: func() []opmanager.ImplStats { return stats }})
	w.all = backend.Observers{board, runs.NewRecorder(board, slog.New(slog.NewTextHandler(w.log, nil)))}
	return w
}

// train makes steps up to one.
func (w *writer) train(to int) *writer {
	w.t.Helper()
	if w.step == 0 {
		w.all.RunStarted(w.run)
	}
	for w.step < to {
		w.step++
		w.line(fmt.Sprintf(`{"step":%d,"loss":%g,"lr":0.5,"grad_norm":1,"tokens_per_second":100,"step_seconds":1}`, w.step, 10/float64(w.step)))
		w.all.StepDone(backend.Step{Step: w.step, Loss: 10 / float64(w.step), TokensPerSecond: 100})
	}
	return w
}

func (w *writer) line(text string) {
	w.t.Helper()
	appendTo(w.t, filepath.Join(w.dir, "metrics.jsonl"), text+"\n")
}

func (w *writer) end(err error) { w.all.RunEnded(backend.Result{Run: w.run, Err: err}) }

func appendTo(t *testing.T, file, text string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	_, err = f.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

// edit changes the record of a run.
func edit(t *testing.T, dir string, with map[string]any) {
	t.Helper()
	file := filepath.Join(dir, "run.json")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(text, &fields))
	for name, value := range with {
		fields[name] = value
	}
	text, err = json.Marshal(fields)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, text, 0o644))
}

func open(t *testing.T, dir string) *runs.Archive {
	t.Helper()
	a, err := runs.OpenArchive(dir)
	require.NoError(t, err)
	return a
}

// byID returns the runs of an archive in one line each.
func byID(a *runs.Archive) map[string]string {
	all := map[string]string{}
	for _, r := range a.Runs() {
		all[r.ID] = strings.TrimSpace(fmt.Sprintf("%s %d/%d %s", r.State, r.Step, r.Steps, r.Error))
	}
	return all
}

// goneProcess returns the number of a process that has ended.
func goneProcess(t *testing.T) int {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	require.NoError(t, cmd.Run())
	return cmd.Process.Pid
}

func TestArchive(t *testing.T) {
	root := t.TempDir()
	at := func(elem ...string) string { return filepath.Join(append([]string{root}, elem...)...) }
	newWriter(t, at("a", "done")).train(4).end(nil)
	newWriter(t, at("a", "failed")).train(2).end(errors.New("the disk is full"))
	newWriter(t, at("a", "stopped")).train(3).end(fmt.Errorf("%w at step 3", backend.ErrInterrupted))
	goesOn := newWriter(t, at("running")).train(2)
	defer goesOn.end(nil)
	killed := newWriter(t, at("killed")).train(1)
	killed.end(nil)
	killed.train(3) // more than the record says
	edit(t, at("killed"), map[string]any{"state": "running", "ended": nil, "pid": goneProcess(t)})
	newWriter(t, at("elsewhere")).train(2).end(nil)
	edit(t, at("elsewhere"), map[string]any{"state": "running", "ended": nil, "host": "another"})
	newWriter(t, at("silent")).train(2).end(nil)
	edit(t, at("silent"), map[string]any{"state": "running", "ended": nil, "host": "another"})
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(at("silent", "run.json"), old, old))
	newWriter(t, at("older")).train(2).end(nil)
	require.NoError(t, os.Remove(at("older", "run.json")))
	newWriter(t, at("damaged")).train(3).end(nil)
	require.NoError(t, os.WriteFile(at("damaged", "run.json"), []byte(`{"state": `), 0o644))
	newWriter(t, at("again", "previous", "1")).train(4).end(nil)
	newWriter(t, at("a", "done", "checkpoints", "step-00000004")).train(1).end(nil) // a copy of something else
	require.NoError(t, os.MkdirAll(at("empty", "run.json"), 0o755))

	a := open(t, root)
	assert.Equal(t, map[string]string{
		"a/done": "done 4/4", "a/failed": "failed 2/4 the disk is full", "a/stopped": "interrupted 3/4 interrupted at step 3",
		"running": "running 2/4", "killed": "dead 3/4", "elsewhere": "running 2/4", "silent": "dead 2/4",
		"older": "unknown 2/0", "damaged": "unknown 3/0", "again/previous/1": "done 4/4",
	}, byID(a))
	for _, r := range a.Runs() {
		assert.InDelta(t, 10/float64(r.Step), *r.Loss, 1e-9, r.ID)
		assert.Equal(t, filepath.Join(root, filepath.FromSlash(r.ID)), r.Dir)
		assert.Equal(t, r.State == runs.Running, r.Ended == nil, r.ID)
	}
	used, ok := a.Uses("a/done")
	assert.True(t, ok)
	assert.Equal(t, []runs.Use{{Op: "rope", Impl: "reference.go", Kind: "unspecified", Calls: 7, Fallbacks: 3, Declines: 2, Errors: 1}}, used)
	points, ok := a.Curve("killed", 2)
	assert.True(t, ok)
	require.Len(t, points, 2)
	assert.Equal(t, 2, points[0].Step)
	for _, id := range []string{"", "..", "../x", "a", "a/done/checkpoints/step-00000004"} {
		_, ok := a.Curve(id, 0)
		assert.False(t, ok, id)
	}
	assert.Equal(t, map[string]string{"done": "done 4/4"}, byID(open(t, at("a", "done"))), "a run directory itself")
}

// An archive follows runs that go on: new steps, half of a line, and a file that was written anew.
func TestArchiveFollows(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "exp")
	w := newWriter(t, dir).train(2)
	a := open(t, dir)
	steps := func() string {
		points, ok := a.Curve("exp", 0)
		require.True(t, ok)
		var all []string
		for _, p := range points {
			all = append(all, strconv.Itoa(p.Step))
		}
		return strings.Join(all, " ")
	}
	assert.Equal(t, "1 2", steps())
	w.train(3)
	assert.Equal(t, "1 2 3", steps())
	metrics := filepath.Join(dir, "metrics.jsonl")
	appendTo(t, metrics, `{"step":4,"loss":`)
	assert.Equal(t, "1 2 3", steps(), "a line that is not whole")
	appendTo(t, metrics, "2.5}\n")
	assert.Equal(t, "1 2 3 4", steps())
	appendTo(t, metrics, "garbage\n"+strings.Repeat("x", 200_000)+"\n"+`{"step":2,"loss":1}`+"\n"+`{"step":5,"loss":2,"valid_loss":3}`+"\n")
	assert.Equal(t, "1 2 3 4 5", steps(), "lines that are no record, and a step that was there before")
	assert.InDelta(t, 3, *a.Runs()[0].ValidLoss, 0)

	other := metrics + ".new"
	require.NoError(t, os.WriteFile(other, []byte(`{"step":1,"loss":9}`+"\n"), 0o644))
	require.NoError(t, os.Rename(other, metrics))
	assert.Equal(t, "1", steps(), "a run that started over")
	require.NoError(t, os.Truncate(metrics, 0))
	assert.Empty(t, steps())

	appendTo(t, filepath.Join(dir, "train.log"), strings.Repeat("0123456789\n", 10_000)+"the end\n")
	text, ok := a.Log("exp", 2)
	assert.True(t, ok)
	assert.Equal(t, "0123456789\nthe end\n", string(text))
	text, _ = a.Log("exp", 1000_000)
	assert.True(t, strings.HasPrefix(string(text), "0123456789\n") && len(text) <= 64<<10)
	w.end(nil)
}

// The record says when the process was last heard of, and a run that cannot record says so once.
func TestRecorder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "exp")
	w := newWriter(t, dir).train(1)
	record := func() (r runs.Run) {
		text, err := os.ReadFile(filepath.Join(dir, "run.json"))
		if err == nil {
			require.NoError(t, json.Unmarshal(text, &r))
		}
		return r
	}
	require.Eventually(t, func() bool { return record().State == runs.Running }, 2*time.Minute, time.Millisecond)
	assert.Equal(t, os.Getpid(), record().PID)
	w.train(2)
	w.all.CheckpointSaved(2)
	require.Eventually(t, func() bool { return record().CheckpointStep == 2 }, 2*time.Minute, time.Millisecond)
	w.end(nil)
	done := record()
	assert.Equal(t, "done 3", fmt.Sprint(done.State, " ", done.Fallbacks))

	// A start with nothing left to train keeps the record of the training.
	w.all.RunStarted(backend.Run{Name: "exp", Dir: dir, FirstStep: 5, Steps: 4})
	w.end(nil)
	assert.Equal(t, done, record())

	gone := newWriter(t, filepath.Join(t.TempDir(), "gone"))
	require.NoError(t, os.RemoveAll(gone.dir))
	gone.all.RunStarted(gone.run)
	gone.end(nil)
	assert.Contains(t, gone.log.String(), "the end of the run is not recorded in run.json")
}

func TestOpenArchive(t *testing.T) {
	_, err := runs.OpenArchive(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, "want a run directory")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = runs.OpenArchive(file)
	assert.ErrorContains(t, err, "is not a directory")
	assert.Empty(t, open(t, t.TempDir()).Runs())
}
