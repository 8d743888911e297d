package rundir

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/primus-fl/primus/internal/durable"
)

const lockName = ".lock"

// Files of a run directory that other packages write or read: the log, and the record of the run.
const (
	LogName = "train.log"
	// ConfigName is the file with the resolved experiment.
	ConfigName = "config.yaml"
	// ManifestName is the file with the impls that serve ops.
	ManifestName = "manifest.json"
	// DispatchName is the file with the impls that ops used and the patches that were applied.
	DispatchName = "dispatch.json"
	RunFileName  = "run.json"
)

// leftOver matches the names of temporary files of a killed run.
var leftOver = regexp.MustCompile(`^\..*` + regexp.QuoteMeta(durable.TempMark) + `[0-9a-z]+$`)

// Dir is the locked directory of one run.
type Dir struct {
	path     string
	lock     *durable.LockFile
	warnings []string
}

// Open creates the directory of a run, locks it, checks that files can be created in it and removes
// the temporary files of a killed run. The caller closes it. A directory that another run holds is
// an error that names its process.
func Open(l Location) (*Dir, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	path := l.Path()
	if err := durable.MkdirAll(path); err != nil {
		return nil, fmt.Errorf("rundir: create the run directory %s: %w", path, err)
	}
	lock, err := durable.Lock(filepath.Join(path, lockName))
	if locked, ok := errors.AsType[*durable.LockedError](err); ok {
		return nil, fmt.Errorf("rundir: the run directory %s is in use by process %d: wait for it or choose another exp_name: %w", path, locked.PID, err)
	}
	if err != nil {
		return nil, fmt.Errorf("rundir: the run directory %s is not writable: %w", path, err)
	}
	if err := durable.CheckWritable(path); err != nil {
		return nil, errors.Join(fmt.Errorf("rundir: the run directory %s is not writable: %w", path, err), lock.Unlock())
	}
	d := &Dir{path: path, lock: lock}
	if w := lock.Warning(); w != "" {
		d.warnings = append(d.warnings, w)
	}
	if _, err := durable.RemoveTemps(path, leftOver); err != nil {
		d.warnings = append(d.warnings, "remove what a killed run left: "+err.Error())
	}
	return d, nil
}

// Path returns the directory, or the path below it that the elements name.
func (d *Dir) Path(elem ...string) string {
	return filepath.Join(append([]string{d.path}, elem...)...)
}

// Warnings describes what Open could not do, although the directory can be used.
func (d *Dir) Warnings() []string { return slices.Clone(d.warnings) }

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

// PlotLoss writes the plot of the losses into the directory.
func (d *Dir) PlotLoss(run Losses) error {
	png, err := PlotLoss(run)
	if err != nil {
		return err
	}
	return d.WriteFile(PlotName, png)
}

// Close ends the lock. Further calls do nothing.
func (d *Dir) Close() error {
	if err := d.lock.Unlock(); err != nil {
		return fmt.Errorf("rundir: %w", err)
	}
	return nil
}
