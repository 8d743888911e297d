package native

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/primus-fl/primus/internal/native/checkpoint"
	"github.com/primus-fl/primus/internal/rundir"
	"github.com/primus-fl/primus/internal/rundir/tracking"
	"github.com/primus-fl/primus/internal/rundir/wandb"
)

// runFiles are the files of a run in its directory, except the log. Those of an earlier run are
// kept together.
var runFiles = []string{
	checkpointsName, nameFile, rundir.MetricsName, rundir.PlotName, rundir.RunFileName, rundir.ConfigName, dataFile, rundir.ManifestName, rundir.DispatchName, batchesFile, tensorboardName, tracking.StateName, wandb.DirName,
	"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja", "tokenizer.model",
}

// keepEarlier moves the files of an earlier run out of the way, except incomplete ones.
func (t *trainer) keepEarlier() error {
	if _, err := checkpoint.RemoveLeftOvers(t.dir.Path(checkpointsName)); err != nil {
		return err
	}
	trained, err := t.hasEarlier()
	if !trained || err != nil {
		return err
	}
	to, err := t.dir.SetAside(runFiles...)
	if err != nil {
		return err
	}
	t.tc.Log.Info("the run that was in this directory is kept in " + to)
	return nil
}

// isNewest reports whether c is the newest checkpoint of the run itself, so that the run continues
// with the files in its directory. c is nil for a run that starts from new weights.
func (t *trainer) isNewest(c *checkpoint.Checkpoint) (bool, error) {
	if c == nil || !sameDir(filepath.Dir(c.Path()), t.store.Dir()) {
		return false, nil
	}
	if t.args.Load == "" {
		return true, nil // newer ones are damaged
	}
	steps, err := t.store.Steps()
	return len(steps) > 0 && steps[0] == c.Step(), err
}

// hasEarlier reports whether the run directory holds steps or checkpoints.
func (t *trainer) hasEarlier() (bool, error) {
	if info, err := os.Stat(t.dir.Path(rundir.MetricsName)); err == nil && info.Size() > 0 {
		return true, nil
	}
	entries, err := os.ReadDir(t.dir.Path(checkpointsName))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !strings.HasPrefix(e.Name(), ".") }), err
}

// checkSame returns an error if checkpoint c, whose state is s, belongs to another corpus or seed.
// It returns none if the user chose the weights with load, or if only the windows of the same
// corpus differ; the run then trains the weights on its own batches.
func (t *trainer) checkSame(c *checkpoint.Checkpoint, s *state) error {
	if s.Seed != t.args.Seed {
		s.Position = 0
		return t.checkSeed(c, s)
	}
	var differs string
	other := true
	switch data := t.data.Fingerprint(); {
	case s.Data == data:
		return nil
	case strings.HasPrefix(s.Data, t.data.Corpus()+" "):
		differs, other = fmt.Sprintf("was trained on other windows of the corpus: %s, and this run's are %s", s.Data, data), false
	default:
		differs = fmt.Sprintf("was trained on other data: %s, and this run's is %s%s", s.Data, data, t.changedFiles(s.Data))
	}
	s.Position = 0
	return t.otherBatches(c, differs, other)
}

// checkSeed is checkSame for the seed alone.
func (t *trainer) checkSeed(c *checkpoint.Checkpoint, s *state) error {
	if s.Seed == t.args.Seed {
		return nil
	}
	return t.otherBatches(c, fmt.Sprintf("was trained with seed %d, and this run's is %d", s.Seed, t.args.Seed), true)
}

// otherBatches reports that a run would see other batches than the run that saved checkpoint c. It
// is an error if that is another run and the user did not choose its weights with load, and a
// warning otherwise.
func (t *trainer) otherBatches(c *checkpoint.Checkpoint, differs string, otherRun bool) error {
	if otherRun && t.args.Load == "" {
		return t.anotherRun(c, differs)
	}
	t.tc.Log.Warn("the checkpoint " + differs + "; batches start from the beginning")
	return nil
}

// anotherRun returns the error for a directory that holds another run.
func (t *trainer) anotherRun(c *checkpoint.Checkpoint, differs string) error {
	dir := t.location().Path()
	return fmt.Errorf("run directory %s holds another run: %s %s; give exp_name=NAME for a directory of its own, load=%s to train those weights further, or load=none to start over and keep the earlier run in %s",
		dir, filepath.Base(c.Path()), differs, t.store.Dir(), filepath.Join(dir, rundir.PreviousName))
}

// checkRemaining returns an error if the checkpoint is already beyond train_iters.
func (t *trainer) checkRemaining(c *checkpoint.Checkpoint, step int) error {
	if step <= t.args.TrainIters {
		return nil
	}
	return fmt.Errorf("train_iters: given %d, and %s is at step %d already: give train_iters a larger number to train further, exp_name=NAME for another run, or load=none to start over",
		t.args.TrainIters, c.Path(), step)
}

// howToGoOn returns the command that continues from the last checkpoint.
func (t *trainer) howToGoOn() string {
	if t.args.Load == "" || sameDir(t.args.Load, t.saveDir()) {
		return "the same command goes on from there"
	}
	return fmt.Sprintf("the same command with load=null added goes on from there, because load is %s", t.args.Load)
}

// sameDir reports whether two paths are the same directory.
func sameDir(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}
