package rundir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/primus-fl/primus/runtime/backends/native/checkpoint/durable"
)

// LogName is the name of the log file in a run directory.
const LogName = "run.log"

const lockName = ".lock"

// Dir is the locked directory of one run.
type Dir struct {
	path    string
	lock    *durable.LockFile
	log     *os.File
	metrics metrics

	mu       sync.Mutex
	warnings []string // guarded by mu
}

// Open creates the directory of a run with its parents, locks it, checks that
// files can be created in it, removes the temporary files of a killed run and
// opens the log file for appending. The caller closes it. A directory that
// another run holds is an error that names its process.
func Open(path string) (_ *Dir, err error) {
	if path == "" {
		return nil, errors.New("rundir: got an empty path, want a directory: set workspace, work_group, user_name and exp_name")
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("rundir: create the run directory %s: %w", path, durable.Explain(err))
	}
	lock, err := durable.Lock(filepath.Join(path, lockName))
	if locked, ok := errors.AsType[*durable.LockedError](err); ok {
		return nil, fmt.Errorf("rundir: the run directory %s is in use by process %d: wait for it or choose another exp_name: %w", path, locked.PID, err)
	}
	if err != nil {
		return nil, fmt.Errorf("rundir: the run directory %s is not writable: %w", path, err)
	}
	d := &Dir{path: path, lock: lock}
	d.metrics.path = filepath.Join(path, MetricsName)
	if err := durable.CheckWritable(path); err != nil {
		return nil, errors.Join(fmt.Errorf("rundir: the run directory %s is not writable: %w", path, err), lock.Unlock())
	}
	d.log, err = os.OpenFile(filepath.Join(path, LogName), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("rundir: open the log file: %w", durable.Explain(err)), lock.Unlock())
	}
	if w := lock.Warning(); w != "" {
		d.warn(w)
	}
	if _, err := durable.RemoveTemps(path, "."); err != nil {
		d.warn("remove what a killed run left: " + err.Error())
	}
	return d, nil
}

// Path returns the directory, or the path below it that the elements name.
func (d *Dir) Path(elem ...string) string {
	return filepath.Join(append([]string{d.path}, elem...)...)
}

// Log returns the log file, opened for appending. It is valid until Close.
func (d *Dir) Log() io.Writer { return d.log }

// Warnings returns what was odd so far although the directory can be used: no
// locks on its file system, left-overs that could not be removed, metrics lines
// that are no records.
func (d *Dir) Warnings() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.warnings)
}

func (d *Dir) warn(texts ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.warnings = append(d.warnings, texts...)
}

// WriteFile replaces the file of this name in the directory; a crash or a full
// disk leaves the old one.
func (d *Dir) WriteFile(name string, data []byte) error {
	err := durable.WriteFile(d.Path(name), func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	if err != nil {
		return fmt.Errorf("rundir: write %s: %w", name, err)
	}
	return nil
}

// Plot replaces loss.png by the plot of all records, titled with the name of the
// directory. Without any record it does nothing.
func (d *Dir) Plot() error {
	if len(d.metrics.records) == 0 {
		return nil
	}
	png, err := PlotLoss(filepath.Base(d.path), d.metrics.records)
	if err != nil {
		return err
	}
	return d.WriteFile(PlotName, png)
}

// Close flushes and closes the metrics and the log and ends the lock. Further
// calls do nothing.
func (d *Dir) Close() error {
	err := errors.Join(d.metrics.close(), closeLog(d.log), d.lock.Unlock())
	if err != nil {
		return fmt.Errorf("rundir: close %s: %w", d.path, err)
	}
	return nil
}

func closeLog(f *os.File) error {
	if err := f.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
