package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/primus-fl/primus/internal/durable"
)

// PreviousName is the directory, within that of a run, that keeps the files of earlier runs.
const PreviousName = "previous"

// SetAside moves the files of some names to previous/N, where N is the first number that is free,
// and returns the path of that directory. Names that do not exist are left out. Nothing is copied
// or removed: a kill in between leaves every file in one of the two places.
func (d *Dir) SetAside(names ...string) (string, error) {
	to, err := d.newPrevious()
	if err != nil {
		return "", fmt.Errorf("rundir: set the earlier run aside: %w", durable.Explain(err))
	}
	for _, name := range names {
		err := os.Rename(d.Path(name), d.Path(PreviousName, to, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("rundir: set the earlier run aside: %w", durable.Explain(err))
		}
	}
	for _, dir := range []string{d.Path(PreviousName), d.Path(PreviousName, to), d.Path()} {
		if err := durable.SyncDir(dir); err != nil {
			return "", fmt.Errorf("rundir: set the earlier run aside: %w", err)
		}
	}
	return d.Path(PreviousName, to), nil
}

// newPrevious makes the first directory that is not there yet.
func (d *Dir) newPrevious() (string, error) {
	if err := durable.MkdirAll(d.Path(PreviousName)); err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		err := os.Mkdir(d.Path(PreviousName, strconv.Itoa(n)), 0o755)
		if !errors.Is(err, fs.ErrExist) {
			return strconv.Itoa(n), err
		}
	}
}
