package runs

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/primus-fl/primus/internal/rundir"
	"github.com/primus-fl/primus/runtime/backend"
)

const (
	// maxRuns and maxDepth bound the search of an Archive.
	maxRuns  = 1000
	maxDepth = 8
	// lookEvery is the shortest time between two searches for runs.
	lookEvery = 2 * time.Second
)

// skipped are directories of a run that cannot contain runs.
var skipped = []string{"checkpoints", "tensorboard", "wandb"}

// Archive reads runs from their directories.
type Archive struct {
	root string
	host string
	now  func() time.Time

	mu     sync.Mutex
	looked time.Time
	runs   map[string]*archived // by id
}

// archived is a run in a directory.
type archived struct {
	dir     string
	metrics metricsFile
}

// DefaultWorkspace is the workspace of experiments that name none.
const DefaultWorkspace = "output"

// OpenArchive returns an Archive of the runs in a directory, which is the directory of a run or
// contains such directories at any depth.
func OpenArchive(dir string) (*Archive, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(root)
	if err != nil {
		return nil, fmt.Errorf("runs: %w; want a run directory, or one that holds some, such as output", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("runs: %s is not a directory; want a run directory, or one that holds some, such as output", dir)
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, fmt.Errorf("runs: %w", err)
	}
	host, _ := os.Hostname() // without a name, no run counts as one of this machine
	return &Archive{root: root, host: host, now: time.Now, runs: map[string]*archived{}}, nil
}

// Runs returns the runs, the newest first.
func (a *Archive) Runs() []Run {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.look()
	all := []Run{}
	for id, r := range a.runs {
		run, _ := a.read(id, r)
		all = append(all, run)
	}
	slices.SortFunc(all, func(x, y Run) int { return cmp.Or(y.Started.Compare(x.Started), strings.Compare(x.ID, y.ID)) })
	return all
}

// Curve returns the points of the run id from a step on, and whether there is such a run.
func (a *Archive) Curve(id string, from int) (points []Point, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, ok := a.find(id)
	if !ok {
		return nil, false
	}
	r.metrics.read(filepath.Join(r.dir, rundir.MetricsName))
	return r.metrics.curve.from(from), true
}

// Uses returns the calls that each impl served in the run id, and whether there is such a run.
func (a *Archive) Uses(id string) (impls []Use, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, ok := a.find(id)
	if !ok {
		return nil, false
	}
	_, impls = a.read(id, r)
	return append([]Use{}, impls...), true
}

// Log returns the last lines of the log of the run id, and whether there is such a run. A log that
// cannot be read is empty.
func (a *Archive) Log(id string, lines int) (text []byte, ok bool) {
	a.mu.Lock()
	r, ok := a.find(id)
	a.mu.Unlock()
	if !ok {
		return nil, false
	}
	end, cut, err := readEnd(filepath.Join(r.dir, rundir.LogName))
	if err != nil {
		return nil, true
	}
	return lastLines(end, cut, lines), true
}

// find returns the run that id names.
func (a *Archive) find(id string) (*archived, bool) {
	a.look()
	r, ok := a.runs[id]
	return r, ok
}

// look searches for runs, at most once per lookEvery.
func (a *Archive) look() {
	if a.now().Sub(a.looked) < lookEvery {
		return
	}
	found := map[string]*archived{}
	// Directories that cannot be read are left out.
	_ = filepath.WalkDir(a.root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case len(found) >= maxRuns:
			return fs.SkipAll
		case err != nil || !d.IsDir():
			return nil
		case path != a.root && (slices.Contains(skipped, d.Name()) || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case strings.Count(strings.TrimPrefix(path, a.root), string(filepath.Separator)) > maxDepth:
			return fs.SkipDir
		}
		if isRun(path) {
			id := a.id(path)
			if found[id] = a.runs[id]; found[id] == nil {
				found[id] = &archived{dir: path}
			}
		}
		return nil
	})
	a.runs, a.looked = found, a.now()
}

// isRun reports whether a directory is that of a run.
func isRun(dir string) bool {
	for _, name := range []string{rundir.RunFileName, rundir.MetricsName} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// id returns the name of the run in a directory: its path below the root, or the name of the root.
func (a *Archive) id(dir string) string {
	below, err := filepath.Rel(a.root, dir)
	if err != nil || below == "." {
		return filepath.Base(dir)
	}
	return filepath.ToSlash(below)
}

// read returns the state of a run and the calls that each impl served.
func (a *Archive) read(id string, r *archived) (Run, []Use) {
	rec, seen, err := readRecord(r.dir)
	r.metrics.read(filepath.Join(r.dir, rundir.MetricsName))
	if err != nil {
		changed := r.metrics.changed
		rec = record{Run: Run{Name: filepath.Base(r.dir), State: Unknown, FirstStep: r.metrics.curve.first, Started: changed, Ended: &changed}}
	}
	run := rec.Run
	run.ID, run.Dir = id, r.dir
	run.LossUnit = backend.Run{LossUnit: run.LossUnit}.LossIn()
	if last := r.metrics.last; last != nil {
		run.update(*last)
		if r.metrics.valid != nil {
			run.ValidLoss = r.metrics.valid
		}
	}
	if run.Ended == nil && (run.Host == a.host && !alive(run.PID) || a.now().Sub(seen) > maxSilence) {
		run.State, run.Ended = Dead, &seen
	}
	run.reckon(a.now())
	return run, rec.Impls
}
